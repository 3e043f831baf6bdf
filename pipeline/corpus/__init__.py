"""The corpus: immutable segments of evidence, published as generations."""

from ..encoders.unit_vectors import Encoder
from .erasing import Selection
from .frame import CorpusFrame
from .publishing import PublishReport
from .store import Corpus

__all__ = ["Corpus", "CorpusFrame", "Encoder", "PublishReport", "Selection"]
