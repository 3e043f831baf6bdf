"""Rebuilds the line of a run: its corpus generation, grants, policies, lanes and settings, with the current code.

Reads: a stored run, the settings that locate the corpus. Gives: `Recorded`, the requests of some snapshots, and
`line_of`, the line that answers them.

Note: the requests are read with their texts. A request with an erased text can be read but not executed again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....nodes.errors import ErasedError
from ....nodes.recall.bm25 import Bm25
from ....nodes.tables import CAPTURES
from ...config.settings import Settings
from ...encoders.cross_encoder import PairScores
from ...encoders.encoder import encoder_of
from ...engines.shards import with_counters
from ...line.driver import Line, ordered_lanes, run_line
from ...line.lanes import MODEL_FAULTS, lanes_off
from ...line.provenance import parts_of, provenance
from ...line.query_vectors import QueryVectors
from ...plugins import plugins_of
from ..access import pinned_corpus
from ..snapshots import Readable

POLICIES = ("purpose_policies", "kind_policies", "plan_rules", "mode_policies", "role_policies", "role_rules")
"""The policy tables that a run stores."""
SHARD = 512
"""Number of requests executed at once."""


@dataclass(frozen=True)
class Recorded:
    """The requests of some snapshots of a run, as inputs of the line."""

    requests: pa.Table
    failures: pa.Table
    captures: pa.Table

    @classmethod
    def of(cls, seen: Readable) -> Recorded:
        """The requests of the snapshots that a principal may read.

        Raises:
            ErasedError: a text of a request was erased.
        """

        def table(name: str, *, texts: bool = False) -> pa.Table:
            found = seen.run.table(name, texts=texts, snapshot_id=seen.snapshot)
            return found.filter(pc.is_in(found["request_id"], seen.request_ids)).combine_chunks()

        requests, stored = table("requests", texts=True), table("requests")
        lost = [name for name in stored.column_names if requests[name].null_count > stored[name].null_count]
        if lost:
            raise ErasedError(
                "Expected the texts of the request, got erased ones",
                at=f"{seen.snapshot or seen.run.run_id}.{lost[0]}",
                hint="`show` shows what is left of it",
            )
        written = table("snapshots")
        captures = CAPTURES.build({name: written[name] for name in CAPTURES.schema.names})
        return cls(requests, table("failures", texts=True), captures)

    def executed(self, line: Line) -> Iterator[dict[str, pa.Table]]:
        """The tables of the line for these requests, a shard at a time; those refused on arrival come last."""
        for low in range(0, self.requests.num_rows, SHARD):
            yield run_line(self.requests.slice(low, SHARD), self.failures.slice(0, 0), self.captures, line)
        if self.failures.num_rows:
            yield run_line(self.requests.slice(0, 0), self.failures, self.captures, line)

    def changed(self, columns: Mapping[str, Any]) -> Recorded:
        """The same requests with other values in some columns, one value for all of them; without those refused on arrival."""
        requests = self.requests
        changed = {name: [value] * requests.num_rows for name, value in columns.items()}
        if own := columns.get("weights"):
            asked = requests["weights"].to_pylist()
            changed["weights"] = [json.dumps({**json.loads(text or "{}"), **own}, sort_keys=True) for text in asked]
        for name, values in changed.items():
            at = requests.schema.get_field_index(name)
            field = requests.schema.field(at)
            requests = requests.set_column(at, field, pa.array(values, field.type))
        return Recorded(requests, self.failures.slice(0, 0), self.captures)


def line_of(
    settings: Settings,
    run: Any,
    *,
    grants: pa.Table | None = None,
    policies: Any = None,
) -> Line:
    """The line of a run over the generation that it pinned, with the current code, models and tokenizers.

    Args:
        grants: replace those stored with the run.
        policies: replace those stored with the run (`load_policies`).

    Raises:
        InputError: a plugin of the run is not installed.
        StoreError: the generation is gone.
        ModelError: a model or tokenizer cannot be loaded.
    """
    corpus = pinned_corpus(settings, run)
    recorded = run.settings
    lanes = ordered_lanes(recorded["lanes"].split(","))
    bm25 = dict(part.split("=") for part in recorded["bm25"].split())
    parts = parts_of(run.provenance)
    # A run without an encoder or cross-encoder is executed again without one.
    encoded = parts.get("encoder") != "none"
    encoder = encoder_of(corpus.encoder_profile, settings.encoder_choice) if encoded else None
    reader = settings.loaded_cross_encoder() if "cross_encoder" in parts else None
    off = lanes_off(lanes, corpus.encoder_profile, encoder)
    used = "semantic" in lanes and "semantic" not in off
    off |= _faults(run)
    known = {name: recorded[name] for name in ("lanes", "bm25", "plugins") if name in recorded}
    plugins = plugins_of(run)
    line = Line(
        corpus=corpus,
        policies=policies.inputs() if policies else {name: run.stored(name) for name in POLICIES},
        grants=run.stored("grants") if grants is None else grants,
        provenance=provenance(
            generation=corpus.generation,
            policies=policies.digest if policies else parts["policies"],
            grants=parts["grants"],
            encoder=corpus.encoder_profile if used else None,
            settings=known,
            cross_encoder=reader.profile if reader is not None else None,
            plugins=plugins.digest,
        ),
        lanes=lanes,
        bm25=Bm25(float(bm25["k1"]), float(bm25["b"])),
        vectors=QueryVectors(encoder),
        lanes_off=off,
        pairs=PairScores(reader),
        plugins=plugins,
    )
    return with_counters(line, run.stored("requests"))


def _faults(run: Any) -> dict[str, str]:
    """Lanes of the run whose model failed on opening, each with the recorded message; they stay off."""
    lanes_off = run.table("conditions", texts=True)
    lanes_off = lanes_off.filter(pc.equal(lanes_off["condition"], "lane_off"))
    return {
        lane: message
        for lane, message in zip(lanes_off["subject"].to_pylist(), lanes_off["message"].to_pylist(), strict=True)
        if message and message.startswith(MODEL_FAULTS)
    }
