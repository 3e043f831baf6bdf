"""Encoders: models that read texts, into vectors or, with a question, into a score; each from local files or a local server.

- `unit_vectors`: what is asked of every encoder
- `encoder`: the embedded model; `minilm`: its arithmetic on a CPU, with `minilm_kernels`, and `minilm_floats` on a CUDA device
- `ollama`: a model of a local server; `cross_encoder`: a text and a question into a score
"""
