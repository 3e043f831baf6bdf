"""A fixed world whose answers are golden: all kinds of evidence, and requests of every purpose, mode, role and shape."""

from __future__ import annotations

from datetime import timedelta
from itertools import cycle, product
from random import Random

from scoped_retrieval.nodes.vocabulary import MODES, OUTPUT_SHAPES, PURPOSES
from worlds import COUNTER, ENTITIES, KINDS, NOW, PATHS, RECORDS, ROLES, ROOTS, TWINS, WINDOWS, WORDS, Row, World

ROWS = 160
_USUAL = {
    "declared_visibility": ("model-visible",) * 8 + ("runtime-only", "user-only"),
    "lifecycle": ("verified",) * 8 + ("candidate", "deprecated", "revoked"),
    "zone": ("public",) + ("internal",) * 6 + ("private",),
    "owner_project": ("shop",) * 6 + ("billing", "shared"),
    "principals": (None,) * 8 + (["ana"], ["bo"]),
    "branch": (None,) * 5 + ("main", "dev"),
    "workspace_root": (None,) * 10 + ROOTS,
    "parent_id": (None,) * 5 + ENTITIES[:3],
    "conflict_set": (None,) * 5 + ("c1",),
    "links": ([], [], ["docs/roles.md"], ["src/cache.py"]),
    "excluded_roles": (None,) * 5 + (["architect"],),
    "symbols": ([], ["createUser"], ["session"]),
    "calls": ([], ["createUser"], ["retry"]),
    "section": (None, "Roles", "createUser"),
    "authority": (0, 1, 2, 3),
    "namespace": (None,) * 10 + ("core", "ui"),
    "test_suite": (None,) * 6 + ("unit", "e2e"),
    "level": (None,) * 5 + ("task", "project"),
}


def golden_world() -> World:
    """The world, with three publications, the second without vectors."""
    random = Random(52)
    requests = [_request(random, number, *one) for number, one in enumerate(_asked())]
    return World(tuple(_row(random, number) for number in range(ROWS)), tuple(requests), encoded=(True, False, True))


def _row(random: Random, number: int) -> Row:
    origin, kind = KINDS[number % len(KINDS)]
    record = random.choice(RECORDS) if origin == "structured-sot" or number % 5 == 0 else None
    session = random.choice((None, "s-1", "s-2")) if kind in ("memory", "session-event") else None
    lines = [
        " ".join(random.choice(TWINS) if number % 4 == 0 else random.choices(WORDS, k=8)) for _ in range(number % 9 + 1)
    ]
    said = "" if record is None else f"id: {record}\nfee: ${random.randint(1, 3)}\n"
    return {name: random.choice(values) for name, values in _USUAL.items()} | {
        "entity": record if origin == "structured-sot" else f"e{number}",
        "source_id": f"{origin}:{number % 3}",
        "origin_class": origin,
        "evidence_kind": kind,
        "owner_user": random.choice((None, "ana", "bo")) if origin == "memory" else None,
        "session_id": session,
        "path": random.choice((*PATHS, None)),
        "version": f"v{number % 3}",
        "event_time": None if session is None else NOW - timedelta(days=30, minutes=45 * (number % 9)),
        "recorded_time": NOW - timedelta(days=random.randint(-2, 80)),
        "superseded_at": random.choice((None,) * 5 + (NOW - timedelta(days=2),)),
        "deleted_at": random.choice((None,) * 8 + (NOW - timedelta(days=6),)),
        "valid_from": None,
        "valid_until": random.choice((None,) * 6 + (NOW - timedelta(days=3),)),
        "superseded_by": None,
        "text": said
        + "\n".join([*lines, *(["`createUser`?"] if kind == "session-event" else [])])
        + "\n" * (number % 2),
        "line_start": 10 * number + 1,
        "line_end": 10 * number + len(lines),
    }


def _asked() -> list[tuple[str | None, ...]]:
    """Purpose, mode, role and shape of each request: every purpose in every mode and shape, under roles in turn."""
    roles = cycle((None, None, *ROLES))
    return [(*one, next(roles)) for one in product(PURPOSES.values, (None, *MODES.values), OUTPUT_SHAPES.values)]


def _request(random: Random, number: int, purpose: str, mode: str | None, shape: str, role: str | None) -> Row:
    request: Row = {
        "request_id": f"g{number:03d}",
        "question": " ".join(random.choices(WORDS, k=3))
        + (f" {random.choice(RECORDS)} fee?" if number % 4 == 0 else ""),
        "project": "shop",
        "purpose": purpose,
        "output_shape": shape,
        "time": {"as_of": (NOW - timedelta(days=number % 11)).isoformat(), **WINDOWS[number % len(WINDOWS)]},
        "counter": COUNTER if number % 7 == 0 else None,
        "recall_effort": ("full", "graph", "minimal")[number % 3],
        "detail": ("full", "auto", "outline")[number % 5 % 3],
        "budget": {"max_tokens": (200, 600, 2_000)[number % 3], "max_items": (4, 12)[number % 2], "lane_k": 12},
    }
    fields = {"mode": mode, "role": role, "branch": ("main", None, None)[number % 3],
              "session_id": ("s-1", None)[number % 2], "workspace_root": (ROOTS[0], None)[number % 2]}  # fmt: skip
    request |= {name: value for name, value in fields.items() if value is not None}
    if number % 6 == 0:
        request["anchors"] = {"failing_test": PATHS[1], "symbols": ["createUser"]}
    if number % 8 == 0:
        request["denied_paths"] = ["path:logs/"]
    return request
