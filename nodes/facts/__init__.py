"""Values compared with records: the parts of `fact_verification`, and the resulting audit conditions.

- `fact_values`: values that can be checked; `fact_matching`: which records agree
- `fact_notes`: the note next to a contradicted value
- `fact_conflicts`: fields with different values in two trusted records
"""
