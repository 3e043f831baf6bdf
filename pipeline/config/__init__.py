"""Configuration: settings, grants, policies, and the corpus and runs that they name.

- `settings`, of `declared_settings`, which also has the named sets of weights
- `grants`; `policies`
- `opening`: opens the corpus and the runs of the settings
"""
