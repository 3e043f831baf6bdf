"""From items to the bytes of a block, and what they cost: parts of packing, trimming, citing and projecting.

- `item_texts`: the text of an item and the places of its parts; `item_rendering`: its bytes; `masking` of e-mails and paths
- `kind_places`: places kept for the best item of a kind
- `greedy_fit`: which items fit a budget; `item_costs`: what they cost; `detail_caps`: how much of each is shown
- `neighbors`: which neighbors of a row add words; `line_units`: where texts may be cut; `passages`: which part of a text a cut keeps; `signatures`: outlines of code
- `token_counting`: counters by name; `byte_runs`: the bundled one, over bytes
"""
