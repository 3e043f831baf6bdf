"""Reading: what was written, for those who may see it.

- `grants`: what the grants in force let a principal see; `snapshots`: which snapshots of a run, and how much of each
- `access`: one run or snapshot, or the refusal; `across_runs`: several runs, damaged ones apart
- `replaying`: a snapshot read again; `reports`: a run or snapshot as a whole; `model_turns`: what a model request was shown
- `answers` and `verify_facts`: answers checked against snapshots
- `verification`, with `witness`, an independent recomputation; `auditing`: the line run again
"""
