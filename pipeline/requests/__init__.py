"""Requests: their fields, their files, and how each is stamped with both clocks or refused on arrival.

- `fields`: what a request may say, by `converters`, one per kind of value; `allowed_names`: what is installed; `files`: files of requests; `resolve`: rows of them become REQUESTS; `resolver`: for one principal
- `narrowing`: what two sets of fields both allow; `presets`: fields in a file, which bound every request under them
- `handoff`: the mode that a work tree names; `commits`: when a commit was recorded
"""
