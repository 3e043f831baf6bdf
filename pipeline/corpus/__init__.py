"""The corpus: immutable segments of evidence, published as generations.

- `store`: a corpus as a whole
- the generations and the chain that publishes them: `manifest`
- read: `generation`, `frame`, `packs`, `stored`; changed and described rows: `deltas`
- published: `incoming`, `publishing` (with the difference to what is stored), `next_generation`, `parts`
- derived from rows: `identity`, `postings`, `vectors`
- stored beside rows: `commits`
- erasure: `erasing`, `tombstones`; verification: `stored`
"""

from ..encoders.unit_vectors import Encoder
from .erasing import Selection
from .frame import CorpusFrame
from .publishing import PublishReport
from .store import Corpus

__all__ = ["Corpus", "CorpusFrame", "Encoder", "PublishReport", "Selection"]
