"""Encoders: models that turn texts into vectors or, with a question, into a score; from local files or a server.

- `choice`: the selected encoder, and how it is reached; `unit_vectors`: the interface of every encoder
- `encoder`: the embedded model, and every kind by name; `minilm`: its arithmetic, with `minilm_kernels`
- `sentence_transformer`: a model of a folder; `openai_encoder`: of a server, known by its answers to fixed texts
- `cross_encoder`: a text and a question into a score
- `endpoint`: JSON over HTTP; `model_files`: digests of a folder; `threads`: one thread per text
"""
