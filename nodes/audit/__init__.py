"""What is written down: the parts of `audit_snapshot`.

- `decision_rules`: the fate of one candidate; `condition_rules`: what holds for the answer, by the question's own words too
- `snapshot_digest`: everything asked, decided and shown, as one SHA-256
"""
