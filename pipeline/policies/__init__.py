"""Policies: the files of `data/policies/` and role overlays, read strictly into the tables of the line."""
