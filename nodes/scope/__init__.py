"""The reach of a request: the parts of `scope_resolution`.

- `active_grants`: the access that grants give
- `selectors`: which sources and paths a list of patterns picks, and which pick no source
- `mode_choices`: the choices of one mode for one set of variables, its paths filled in
- `source_files`: which rows are source code, and of which file
"""
