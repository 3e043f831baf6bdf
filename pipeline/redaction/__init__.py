"""Redaction: secrets found in texts by rules, and masked before anything is stored, asked or shown."""
