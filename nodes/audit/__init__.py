"""The audit record: the parts of `audit_snapshot`.

- `decision_rules`: the outcome of each candidate; `condition_rules`: the conditions of the answer
- `records`: what a run stores of its requests, the tables of the line as views of it, and the digest of all
"""
