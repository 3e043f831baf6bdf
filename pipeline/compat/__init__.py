"""Interfaces of other documents over this package's own line."""
