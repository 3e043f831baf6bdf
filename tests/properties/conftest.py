"""How many generated cases a property sees: 500 before every commit, more in the `full` profile (`make test-full`)."""

import os

from hypothesis import HealthCheck, settings

_SHARED = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True, "derandomize": True}
settings.register_profile("quick", max_examples=15, **_SHARED)
settings.register_profile("promises", max_examples=500, **_SHARED)
settings.register_profile("full", max_examples=3_000, **_SHARED)
settings.load_profile(os.environ.get("SCOPED_RETRIEVAL_PROFILE", "promises"))
