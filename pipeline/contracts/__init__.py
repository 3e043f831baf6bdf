"""Contracts: explained, linted, compared, delegated, and questioned with `why`.

`scope` resolves a request, or that of a snapshot, to the rows it could see, without a retrieval, and compares two of
them; `explain`, `lint` and `delegation` produce the output of the `contract` commands. `why` reports where a named row
was lost: what would open the gates that stop it, or why it was not recalled; and follows an audit entry of an x-ray.
"""
