"""The corpus: immutable segments of evidence, published as generations.

- `store`: a corpus as a whole; `memory`: one that is not stored; `writing`: its one lock
- which generation is current: `manifest`, `heads`; who signs it: `trust`
- read: `generation`, `frame`, `packs` and their `blocks`, `stored`; `descriptions` (with changes of placements), `deltas` (both): rows told again
- published: `incoming`, `publishing` (with the difference to what is stored), `next_generation`, `parts`, `compaction`
- of rows: `identity`, `zones`, `postings`, `vectors` of `outlines` and texts, `embedding_checkpoints` (vectors not published yet)
- beside rows: `commits`, `source_states` (what sources were last read as)
- taken out and looked over: `erasing`, `tombstones`, `checking`
- `pinned`: the place of the generation that a run pinned
"""

from ..line.encoders.unit_vectors import Encoder
from .erasing import Selection
from .frame import CorpusFrame
from .publishing import PublishReport
from .store import Corpus
from .trust import Trust

__all__ = ["Corpus", "CorpusFrame", "Encoder", "PublishReport", "Selection", "Trust"]
