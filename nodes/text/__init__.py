"""What a text is made of and what it names: terms, anchors, keys.

- `text_analysis`: terms, by named analyzers; `word_runs` does plain texts all at once
- `indexed_text`: what of a row is indexed as text
- `anchor_patterns`: identifiers, paths and the like, as they are printed; `anchor_keys`: what an anchor looks up
- `references`: the documents a text cites and the records it names; `named_first`: places behind the record that names one
- `index_keys`: under which keys names, paths and ids are indexed; `plain_keys` does plain ones all at once, `siphash`
  hashes them
- `role_words`: which rows speak the words of a role; `same_texts`: which texts are nearly the same
"""
