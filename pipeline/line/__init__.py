"""The line: runs the dataflow of `nodes` over a corpus.

- `driver`, on a `planned_driver`; `lanes`: which lanes run; `query_vectors`; `tokenizers`
- `provenance`: the code and versions that an answer depends on
"""
