"""The relevance of a candidate to its request: the parts of `task_aware_reranking`.

- `anchor_hits`: which anchors a row hits, and how well
- `file_terms`: how well a row's file matches, as a whole, by its best passages and by its outlines
- `reasons`: why a row was selected, in words
- `row_terms`: authority, recency and scope, by a row's own columns
- `role_terms`: effects of a role on a row, including its place in the block, which packing uses
"""
