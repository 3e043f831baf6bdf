"""The corpus: immutable segments of evidence, published as generations."""

from .erasing import Selection
from .frame import CorpusFrame
from .publishing import PublishReport
from .store import Corpus
from .vectors import Encoder

__all__ = ["Corpus", "CorpusFrame", "Encoder", "PublishReport", "Selection"]
