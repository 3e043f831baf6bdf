"""Contracts as things to look at: previewed, explained, linted, compared, delegated, and asked why.

`scope` resolves a request to the rows it could see without asking anything; `preview`, `explain`, `lint`, `difference`
and `delegation` are what the commands `contract ...` print; `snapshots` gives the fields that a snapshot was asked with.
`why` says where a named row was lost, with `remedies` where a gate stops it and `unrecalled` where it passes them all; `trail`
follows an audit entry of an x-ray to its decision, its line in the log and the row as it was stored.
"""
