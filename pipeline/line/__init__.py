"""The line: runs the dataflow of `nodes`, with its lanes and encoders.

- `driver`, on a `planned_driver`; `lanes`: which lanes run; `encoders`; `query_vectors`; `tokenizers`
- `code_digest` and `provenance`: the code and versions that an answer depends on; `cores`: processors of this machine
"""
