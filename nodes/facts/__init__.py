"""Values compared with records: the parts of `fact_verification`, and the resulting audit conditions.

- `fact_values`: values that can be checked; `fact_matching`: which records agree
- `fact_conflicts`: fields with different values in two trusted records
"""
