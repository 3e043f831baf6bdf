"""The line: pure modules, one per step, and the code they share. None uses I/O, a clock, the environment or randomness.

A step is a module of Hamilton nodes: each public function is named after the table it returns, each parameter after the
table it reads. Steps never import each other; they share only `tables`. The helpers of a step are in a folder, and
folders import each other in one direction only; the project's import rules enforce both.

The steps, in the order of the line, each with the folder it uses most:

- `scope_resolution`: contracts, their bounds, layers and groups; `scope`
- `session_trail`: the last events of the request's own session
- `query_planning`: anchors, sub-queries and terms; `text`
- `boundary_gates`, the first wall: which rows recall may score; `walls`
- `candidate_recall`: hits lane by lane, and candidates; `recall`, which uses `kernels` where they are faster
- `boundary_filtering`, the second wall: every candidate judged again; `walls`
- `task_aware_reranking`: score terms and ranks; `reranking`, and of `recall` the feedback of the best rows
- `evidence_packing`: candidates become items; `blocks`
- `fact_verification`: checks values against structured records; `facts`
- `budget_trimming`: the hard limit; `blocks`
- `citation_binding`: resolves every label to its source; `blocks`
- `context_projection`: the bytes the model may read; `blocks`
- `audit_snapshot`: decisions, conditions, snapshots; `audit`

The context policy is a second line (`context_tables`: its tables), over `turns`: `context_state` (the folded session
log), `context_sources` (everything that might be shown), six decisions (`context_selection`, `context_ordering`,
`context_compression`, `context_isolation`, `context_budget`, `context_ledger`) and `context_messages` (the input
itself).

After the line: `answers`, which compares a model's answer with what the model was shown.

Shared by all of them:

- declarations: `schema` (how a table is declared), `tables` (every table), `vocabulary` (closed lists), `errors`
- registries: `lanes`, `score_terms` (the gates are in `walls`); `plugins`: extensions from other packages
- `frames`: the corpus as arrays
- `columns`: look-ups, groups, exact numbers and identity
"""
