"""Parsing: strict readers of hand-written files, with errors that name the place and quote no secret.

- `yaml_files`, `strict_json`, `data_files`: the formats; `patterns`: globs
- `values`: numbers, flags and times in any of them
- `quoting`: what an error may quote; `documents`: models of pydantic, with errors in this form
"""
