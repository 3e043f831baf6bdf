"""Until structured records are indexed, every item passes through unchecked."""

from scoped_retrieval.nodes.tables import FACT_CHECKS
from selection_line import line


def test_there_is_nothing_to_check_against_yet() -> None:
    assert line([{"text": "the limit is 12"}]).run()["fact_checks"].equals(FACT_CHECKS.empty())
