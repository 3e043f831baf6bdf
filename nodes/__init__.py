"""The line: pure modules, one per step, and what the steps share. No I/O, clock, environment or randomness in any of them.

A step holds Hamilton nodes: its public functions are tables by name, and a parameter names the table it takes. Steps
never import each other; they meet through `tables`. What a step is made of lies in a folder, and folders rest on each
other in one direction only; the import rules of the project hold both.

The steps, in the order of the line, with the folders they draw on most:

- `mode_presets`: what the mode of each request chooses; `scope`
- `scope_resolution`: contracts, their bounds, layers and groups; `scope`
- `session_trail`: what the last events of the request's own session add to it
- `query_planning`: anchors, sub-queries and terms; `text`
- `boundary_gates`, the first wall: which rows recall may score; `walls`
- `candidate_recall`: hits lane by lane, and candidates; `recall`, which runs over `kernels` where they pay
- `boundary_filtering`, the second wall: every candidate judged again; `walls`
- `relevance_feedback`: what the best rows of a request say of its others
- `task_aware_reranking`: score terms and ranks; `reranking`
- `evidence_packing`: candidates become items; `blocks`
- `fact_verification`: facts against structured records; `facts`
- `budget_trimming`: the hard limit; `blocks`
- `citation_binding`: every label leads to its source; `blocks`
- `context_projection`: the bytes the model may read; `blocks`
- `audit_snapshot`: decisions, conditions, snapshots; `audit`

The context policy is a second line (`context_tables`: its tables), over `turns`: `context_state` (the session log folded),
`context_sources` (everything that might be shown), six decisions (`context_selection`, `context_ordering`,
`context_compression`, `context_isolation`, `context_budget`, `context_ledger`) and `context_messages` (the input itself).

After the line: `answers`, which hold what a model said against what it was shown.

What all of them rest on:

- declarations: `schema` (how a table is declared), `tables` (every table), `vocabulary` (closed lists), `errors`
- what there is of each kind: `lanes`, `score_terms`; the gates are in `walls`; `plugins`: what other packages add
- `frames`: the corpus as arrays
- `rendering`: every byte of a block
- `columns`: look-ups, groups, exact numbers and identity
"""
