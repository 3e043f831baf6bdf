"""The contents of texts and the things they name: terms, anchors, keys.

- `text_analysis`: terms, by named analyzers; `word_runs` splits all texts at once
- `indexed_text`: the part of a row that is indexed as text
- `anchor_patterns`: identifiers, paths and other anchors, as printed; `anchor_keys`: the keys an anchor looks up
- `references`: the documents a text cites and the records it names; `named_first`: places records after the record that
  names them
- `index_keys`: the keys under which names, paths and ids are indexed; `plain_keys` handles plain ones at once
- `role_words`: rows that use the words of a role; `same_texts`: texts that are nearly the same
"""
