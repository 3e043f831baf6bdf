"""Contracts as things to look at: narrowed, previewed, explained, linted, compared, delegated, and asked why.

`narrowing` is the algebra of request fields, `presets` its files; `scope` resolves a request to the rows it could see
without asking anything; `preview`, `explain`, `lint`, `difference` and `delegation` are what the commands
`contract ...` print; `why` and `remedies` say where a named row was lost; `out_of_scope` is the auditors' capture.
"""
