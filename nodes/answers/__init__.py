"""An answer held against what was shown; it comes after the line and decides no snapshot.

- `answer_checks`: the verdicts, of sentences against records too; `answer_claims`: citations, quotes and values; `answer_values`: one form for each value
"""
