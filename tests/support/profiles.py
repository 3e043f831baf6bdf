"""How many generated worlds a property sees. A world asks 25 requests, and each of them is a case.

`quick` while working, `promises` before every commit (250 cases of non-interference and 150 of most other promises, where
72 show each planted fault), `full` before a release (`make test-full`).
"""

import os

from hypothesis import HealthCheck, settings

_SHARED = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True, "derandomize": True}
settings.register_profile("quick", max_examples=3, **_SHARED)
settings.register_profile("promises", max_examples=10, **_SHARED)
settings.register_profile("full", max_examples=200, **_SHARED)
_NAME = {"full": "full", "quick": "quick"}.get(os.environ.get("TEST_PROFILE", ""), "promises")
PROFILE = settings.get_profile(_NAME)
FEWER = settings(PROFILE, max_examples=PROFILE.max_examples * 3 // 5)
"""For what any world shows, whatever rows are hidden from it."""
