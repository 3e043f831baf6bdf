"""Parsing: files that people write, read strictly, with errors that name the place and quote no secret.

- `yaml_files`, `strict_json`: the formats; `patterns`: globs
- `values`: numbers, flags and times that all of them hold
- `quoting`: what an error may quote; `model_errors`: errors of pydantic models in the project's form
"""
