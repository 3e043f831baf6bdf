"""Every setting: name, kind, default, description, and whether a project file may set it.

Nothing that this module imports loads Arrow: every command reads the settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...nodes.lanes import LANE_NAMES as LANES
from ...nodes.score_terms import TERMS
from ...nodes.vocabulary import PURPOSES

ENCODERS = ("minilm/1", "sentence-transformers:FOLDER", "openai:URL#MODEL")
ENGINES = ("local", "ray")
TELEMETRY = ("off", "spans", "content")

WEIGHT_SETS: Mapping[str, Mapping[str, float]] = {
    "document-000": {term.name: 0.0 for term in TERMS if term.family != "role"}
    | {
        "semantic": 0.20, "lexical": 0.10, "anchor": 0.10, "authority": 0.20, "recency": 0.15, "actionability": 0.15,
        "diversity": 0.10,
    },
}  # fmt: skip
"""Name -> score term -> weight; every term that is weighted by anything but a role. `document-000` is the formula of
S0.95, whose lexical match with anchors is two terms.
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """One declared setting.

    `kind` is place (a path or URL), path, paths, text, prompt (verbatim text), choice, list, integer, number, flag,
    names (words), encoder, weights (a path or one of the choices), or variable
    (the name of an environment variable).
    """

    name: str
    kind: str
    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    most: float = float("inf")
    project_file: bool = False
    """Whether a project file may set it: it neither widens rights nor sends anything to another process or machine."""


SETTINGS: Mapping[str, Setting] = {
    s.name: s
    for s in (
        Setting(
            "corpus",
            "place",
            ".scoped-retrieval/corpus",
            "folder of the corpus, or a URL such as s3://bucket/corpus",
            project_file=True,
        ),
        Setting(
            "runs",
            "place",
            ".scoped-retrieval/runs",
            "folder of the runs, or a URL such as s3://bucket/runs",
            project_file=True,
        ),
        Setting(
            "record",
            "flag",
            True,
            "every answer of `ask`, `xray` and the servers is kept as a snapshot; off, there is none to show or verify",
        ),
        Setting(
            "signing_key",
            "path",
            None,
            "Ed25519 private key (PEM) that new heads of the corpus and of the log of runs are signed with",
        ),
        Setting(
            "trusted_key",
            "path",
            None,
            "Ed25519 public key (PEM): heads that it did not sign are refused",
        ),
        Setting(
            "fresh",
            "flag",
            True,
            "`ask` reads again what `index` read on this machine, and indexes a folder without a corpus",
        ),
        Setting("grants", "place", None, "grants file; unset = grants.yaml in the corpus folder"),
        Setting("policies", "path", None, "folder of policies; unset = the bundled ones"),
        Setting(
            "weights",
            "weights",
            None,
            "weight file, as `tune` writes it, or document-000, the formula of document 000; unset = the weights of the policies",
            tuple(WEIGHT_SETS),
            project_file=True,
        ),
        Setting(
            "profile",
            "text",
            None,
            "the profile in use: the settings under [profiles.NAME] in the files override those outside of it",
        ),
        Setting("project", "text", None, "project that commands use by default", project_file=True),
        Setting("principal", "text", None, "who asks; unset = the local user"),
        Setting(
            "purpose",
            "choice",
            "answer-question",
            "purpose of `ask` where none is given",
            PURPOSES.values,
            project_file=True,
        ),
        Setting("lanes", "list", LANES, "recall lanes in use", LANES, project_file=True),
        Setting(
            "encoder",
            "encoder",
            "minilm/1",
            "encoder that `index` and `eval` make vectors with: minilm/1, sentence-transformers:FOLDER, or openai:URL#MODEL; a question takes the one of its corpus",
            ENCODERS,
        ),
        Setting(
            "encoder_query_prompt",
            "prompt",
            None,
            "text put before a question; unset = the model's own, or none for a server",
        ),
        Setting(
            "encoder_passage_prompt",
            "prompt",
            None,
            "text put before a passage; unset = the model's own, or none for a server",
        ),
        Setting(
            "encoder_key_variable",
            "variable",
            None,
            "name of the environment variable with the key of an openai: server",
        ),
        Setting(
            "cross_encoder",
            "path",
            None,
            "folder of a cross-encoder that reranks the best candidates; unset = none",
        ),
        Setting("tokenizers", "paths", (), "tokenizer files that a request may count with, by their paths"),
        Setting("bm25_k1", "number", 1.2, "term frequency saturation of BM25", project_file=True),
        Setting("bm25_b", "number", 0.75, "length normalization of BM25, 0 to 1", most=1, project_file=True),
        Setting("shard_requests", "integer", 512, "requests per shard of a run", project_file=True),
        Setting(
            "engine", "choice", "local", "where the shards of a run are executed: on this machine or by Ray", ENGINES
        ),
        Setting(
            "workers",
            "integer",
            None,
            "processes of `index` and of the local engine of `run`; unset = one per core if worthwhile",
        ),
        Setting(
            "ray_address",
            "text",
            None,
            "address of the Ray cluster for the engine ray; unset = a local cluster is started",
        ),
        Setting("serve_max_bytes", "integer", 1_048_576, "bytes of the body of one HTTP request"),
        Setting("serve_max_connections", "integer", 1_024, "connections that the servers hold at the same time"),
        Setting("serve_max_requests", "integer", 64, "retrieval requests in one HTTP request"),
        Setting("serve_timeout_seconds", "integer", 60, "seconds that the servers have for one request"),
        Setting("serve_threads", "integer", 32, "requests of one principal that the servers answer at the same time"),
        Setting(
            "plugins",
            "names",
            (),
            "plugins whose gates, lanes, score terms and readers are used, by the part of their names before the dot",
        ),
        Setting(
            "reinforcementRecallBoostEnabled",
            "flag",
            False,
            "document 002's name for the plugin `reinforcement`: whether it is used",
        ),
        Setting("progress", "flag", True, "progress on standard error: bars on a terminal, elsewhere a line per phase"),
        Setting(
            "telemetry",
            "choice",
            "off",
            "OpenTelemetry spans of retrievals (extra `otel`): off, spans, or content: questions and texts as well",
            TELEMETRY,
        ),
        Setting("eval_data", "path", None, "folder of the evaluation collections"),
    )
}
"""Every setting by name."""
