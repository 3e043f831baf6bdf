"""Search within A(r): the parts of `candidate_recall`.

- `recall_scope`: the rows, clocks and sub-queries of a scope group
- the lanes: `lane_recall` (lexical, symbol, exact, recent), `vector_recall` (semantic), `file_recall` (whole files of
  code), `expansion_recall` (links), `graph_recall` (walks), `plugin_recall` (lanes of plugins)
- `bm25`: weight and factor; `posting_recall`: look-ups, and scores from posting lists
- `group_scores`: BM25 over groups of rows, such as sessions and files, with statistics of groups
- `turns`: conversations, and the rows beside a row; `turn_scores`: scores of a turn from the turns around it
- `pair_scores`: lexical and semantic scores of any pair of request and row, and the vectors of other rows
- `feedback`: scores of the pool by a request's best rows
- `recall_selection`: top-k of a lane; `candidate_merge`: lanes fused into candidates
"""
