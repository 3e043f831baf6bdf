"""Values held against records: the parts of `fact_verification`, and what the audit says of them.

- `fact_values`: values that can be checked; `fact_matching`: which records agree
- `fact_notes`: the words beside a contradicted value; `fact_conditions`: what holds for the answer then
- `fact_conflicts`: keys to which two trusted rows give different values
"""
