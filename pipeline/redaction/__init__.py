"""Redaction: secrets found in texts by rules, and masked before anything is stored, asked or shown.

- `masking`: texts without their secrets; `rules`: what counts as one; `private_keys`: those of PEM and OpenPGP;
  `keys_over_rows`: those whose lines are rows
"""
