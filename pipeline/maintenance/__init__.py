"""Maintenance: health checks and erasure.

- `doctor`, with `model_checks`; `erasure`: rows and questions, from corpus and runs
"""
