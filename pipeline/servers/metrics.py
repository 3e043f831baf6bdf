"""The counters of the server, for Prometheus: requests and seconds by route and status, snapshots written, requests in
progress.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Counters of one server. Labels are routes and status codes, never ids, names or texts of callers."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "scoped_retrieval_http_requests", "Requests answered.", ("route", "status"), registry=self._registry
        )
        self.seconds = Histogram(
            "scoped_retrieval_http_request_seconds", "Seconds to the answer.", ("route",), buckets=_SECONDS,
            registry=self._registry,
        )  # fmt: skip
        self.in_work = Gauge("scoped_retrieval_http_requests_in_work", "Requests in progress.", registry=self._registry)
        self.retrievals = Counter(
            "scoped_retrieval_retrievals", "Retrievals by status.", ("status",), registry=self._registry
        )

    def text(self) -> bytes:
        """The counters in the text format 0.0.4."""
        return generate_latest(self._registry)
