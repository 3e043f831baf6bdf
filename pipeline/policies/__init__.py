"""Policies: the files of `data/policies/` and role overlays, read strictly into the tables of the line.

- `tables`: purposes and everything together; `modes`: mode policies
- `overlays`: role overlays as declared types; `roles`: as tables
"""
