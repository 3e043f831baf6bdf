"""Rendering and costing the items of a block: parts of packing, trimming, citing and projecting.

- `rendering`: every byte of a block; `item_texts`: the text of an item and the positions of its parts; `masking` of e-mails and paths
- `greedy_fit`: which items fit a budget, and how much of each
- `line_units`: where texts may be cut; `passages`: which part of a text survives a cut
- `token_counting`: counters by name; `byte_runs`: the bundled one, over bytes
"""
