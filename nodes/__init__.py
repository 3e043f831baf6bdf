"""The line: pure modules, one per step, and what the steps share. No I/O, clock, environment or randomness in any of them.

A step holds Hamilton nodes: its public functions are tables by name, and a parameter names the table it takes. Steps
never import each other; they meet through `tables` and share the helpers named beside them.

In the order of the line:

- `mode_presets`: what the mode of each request chooses; `mode_choices`, `path_templates`
- `scope_resolution`: contracts, their bounds, layers and groups; `grant_reach`, `selectors` for sources and paths
- `session_trail`: what the last events of the request's own session add to it
- `query_planning`: anchors, sub-queries and terms; `anchor_patterns`, `anchor_keys`, `role_words`
- `boundary_gates`, the first wall: which rows recall may score; `gates` (the one list), `gate_predicates`, `time_gates`,
  `clocks` (time bounds)
- `candidate_recall`: hits lane by lane, and candidates; `recall_scope` (a group's rows, clocks and sub-queries),
  `lane_recall` and `expansion_recall` (the lanes), `recall_entries` (the keys they look up), `references` (what a text cites
  and names), `scope_postings`, `posting_recall` and `bm25` (scores), `vector_recall` (the semantic lane),
  `recall_selection` (top-k), `candidate_merge` (fusion)
- `boundary_filtering`, the second wall: every candidate judged again; `second_wall`
- `task_aware_reranking`: score terms and ranks; `anchor_hits`, `role_terms`
- `evidence_packing`: candidates become items; `item_texts`
- `fact_verification`: facts against structured records; `fact_matching`, `fact_values`, `fact_notes`, `fact_conditions`,
  `rival_facts`
- `budget_trimming`: the hard limit; `greedy_fit`, `line_units`, `byte_runs`, `token_counting`, `item_rendering`
- `citation_binding`: every label leads to its source
- `context_projection`: the bytes the model may read; `rendering`, and `masking` of e-mails and paths
- `audit_snapshot`: decisions, conditions, snapshots; `decision_rules`, `condition_rules`, `snapshot_digest`

After the line:

- `answer_checks`: an answer held against what was shown; `answer_claims`, `answer_values`, `answer_facts`

Compiled loops of numba, which give the same numbers as the arrays of NumPy beside them, sooner where requests are many:

- `compiled`: whether they are used; `compiled_recall`: lexical recall through them, over `graded_lists`
- what recall passes over: `lookup_kernels`, `list_kernels`, `posting_kernels`, `shown_kernels`, `lifted_kernels`,
  `vector_kernels`, `product_tiles`; what they choose with: `selection_kernels`; what packing counts texts with: `text_kernels`

What all of them rest on:

- declarations: `schema` (how a table is declared), `tables` (every table), `vocabulary` (closed lists), `errors`
- the corpus as arrays: `frames`; `text_analysis` (terms of texts), `word_runs`, `ascii_words`; `index_keys`, `plain_keys`,
  `siphash`
- columns: `keys` (look-ups), `orders` (of rows by several columns), `list_columns`, `ragged` (groups and their
  ranges), `numbers` (exact sums); `kept` (what is worked out once)
- identity: `digests` (of tables), `row_forms` (of rows), `array_bytes`
"""
