"""Redaction: finds secrets in texts by rules and masks them before anything is stored, asked or shown.

- `masking`: masks secrets in texts; `rules`: the rules in `data/redaction`
"""
