"""Requests: their fields and files; on arrival, each is stamped with both clocks or refused.

- `fields`: the fields of a request, with `converters`, one per kind of value; `allowed_names`: the installed names;
  `files`: files of requests; `resolve`: their rows become REQUESTS, for one principal
- `narrowing`: the intersection of two sets of fields; `presets`: fields in a file that bound requests
- `handoff`: the mode in a work tree
"""
