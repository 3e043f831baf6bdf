"""The audit record: the parts of `audit_snapshot`.

- `decision_rules`: the outcome of each candidate; `condition_rules`: the conditions of the answer
- `snapshot_digest`: everything asked, decided and shown, as one SHA-256
"""
