"""Requests: their fields, their files, and the door where each is stamped with both clocks or refused."""
