"""Adapters: a `Retriever` as the retriever of other frameworks, each with an extra of its name.

- `langchain`, `llamaindex`, `haystack`: one class each; what they import is not installed otherwise
- `items`: what a retrieval shows, as texts with their metadata

    ScopedRetriever(retriever=retriever, fields={"project": "shop"})

A refusal is no error there either: it gives no documents. Each document says its snapshot, label and place.
"""
