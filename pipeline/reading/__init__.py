"""Reading: what was written, for those who may see it.

- `access`: who may see which runs; `measured`: rows and seconds of a run; `answers` and `verify_facts`: answers checked against snapshots; `model_turns`
- `verification`, with `witness`, an independent recomputation; `auditing`: the line run again
"""
