"""From items to the bytes of a block, and what they cost: parts of packing, trimming, citing and projecting.

- `item_texts`: the text of an item and where its parts stand; `item_rendering`: its bytes; `masking` of e-mails and paths
- `kind_places`: places kept for the best item of a kind
- `greedy_fit`: which items fit a budget; `line_units`: where they may be cut
- `token_counting`: counters by name; `byte_runs`: the bundled one, over bytes
"""
