"""Adapters: a `Retriever` as the retriever of other frameworks, each with an extra of the same name.

- `langchain`, `llamaindex`, `haystack`: one class each; the framework is installed only with the extra
- `items`: the items of a retrieval, as texts with metadata

    ScopedRetriever(retriever=retriever, fields={"project": "shop"})

A refusal is not an error: it returns no documents. Each document carries its snapshot id, label and locator.
"""
