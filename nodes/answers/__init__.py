"""Compares an answer with what was shown; it runs after the line and changes no snapshot.

- `answer_checks`: the findings; `answer_claims`: citations, quotes and values
"""
