"""Contracts as things to look at: previewed, explained, linted, compared, delegated, and asked why.

`scope` resolves a request, or that of a snapshot, to the rows it could see without asking anything, and compares two of them;
`preview`, `explain`, `lint` and `delegation` are what other commands `contract ...` print. `why` says where a named row was
lost: what would open the gates that stop it, or why it was not recalled. `trail` follows an audit entry of an x-ray to its decision, its line in the log and the row as it was stored.
"""
