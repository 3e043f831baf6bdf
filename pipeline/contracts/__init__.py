"""Contracts: explained, linted, compared, delegated, and questioned with `why`.

`scope` resolves a request, or that of a snapshot, to the rows it could see, without a retrieval, and compares two of
them; and delegates within one; `explain` tells what it admits and likely mistakes. `why` reports where a named row
was lost: what would open the gates that stop it, or why it was not recalled; and follows an audit entry of an x-ray.
"""
