"""Policies: the files of `data/policies/` and role overlays, read strictly into the tables of the line.

- `tables`: purposes, modes, and everything together
- `weight_files`: weights of score terms per purpose, as `tune` writes them
- `roles`: role overlays
"""
