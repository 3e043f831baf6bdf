"""Redaction: finds secrets in texts by rules and masks them before anything is stored, asked or shown.

- `masking`: masks secrets in texts; `rules`: the patterns of secrets; `private_keys`: PEM and OpenPGP keys;
  `keys_over_rows`: keys whose lines are rows
"""
