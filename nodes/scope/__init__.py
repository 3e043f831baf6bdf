"""What a request may reach: the parts of `scope_resolution` and `mode_presets`.

- `active_grants`: what grants open
- `selectors`: which sources and paths a list of patterns picks; `unmatched_selectors`: those that pick no source
- `mode_choices`: what one mode chooses for one set of variables; `path_templates`: its paths
- `source_files`: which rows are source code, and of which file
"""
