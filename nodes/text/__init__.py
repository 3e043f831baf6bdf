"""The contents of texts and the things they name: terms, anchors, keys.

- `text_analysis`: the text of a row that is indexed, and its terms, by named analyzers
- `anchor_patterns`: identifiers, paths and other anchors, as printed
- `index_keys`: the keys under which names, paths and ids are indexed, and those that an anchor looks up
- `references`: the documents a text cites and the records it names
- `role_words`: rows that use the words of a role
"""
