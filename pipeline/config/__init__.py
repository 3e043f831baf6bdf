"""Configuration: settings, grants, policies, and the corpus and runs that they name.

- `settings`, of `declared_settings`
- `grants`; `policies`; `weight_sets`: named weights
- `opening`: opens the corpus and the runs of the settings
"""
