"""Views: stored results in the forms that people and other programs read. Each reads tables and makes no decisions.

- of one snapshot: `xray`, `recall_xray` (document 002), `audit_snapshot` (document 000), `bundle` (document 004), `harness_forms`
- of the line: `lineage`, also by steps, in every format
- for people: `text_table`; `printed`: JSON and text for every interface
- HTML: `report` of a snapshot and of a run; `notebook`: a run, an answer or a retriever in a notebook
"""
