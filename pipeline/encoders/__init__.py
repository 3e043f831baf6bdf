"""Encoders: models that read texts, into vectors or, with a question, into a score; each from local files or a local server."""
