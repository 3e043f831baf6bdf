"""Reading: stored snapshots and runs, limited to what the principal may see.

- `grants`: what the current grants let a principal see; `snapshots`: the readable snapshots of a run, and how much of
  each
- `access`: one run or snapshot, or the refusal; `across_runs`: several runs, with damaged ones reported separately
- `present_rights`: what of a snapshot may still be read; `reports`: runs as a whole, and their verification; `model_turns`: a model
  request's context
- `answers`: checked against snapshots and records
- `auditing`: executing the line again
"""
