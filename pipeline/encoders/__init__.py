"""Encoders: models that turn texts into vectors or, with a question, into a score; from local files or a server.

- `choice`: the selected encoder, and how it is reached; `unit_vectors`: the interface of every encoder
- `encoder`: the embedded model, and every kind by name; `minilm`: its arithmetic, with `minilm_kernels`
- `folder_models`: an encoder of a folder; `cross_encoder`: a text and a question into a score
- `openai_encoder`: a model of a server, known by its answer to a fixed text
"""
