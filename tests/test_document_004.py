"""Document 004: its interface over the project's own line, the names of its types, and an answer for every word of its lists."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from model_server import ModelServer, model_server
from role_world import NOW, asked, overlay
from scoped_retrieval.nodes.errors import InputError, StoreError
from scoped_retrieval.nodes.vocabulary import CITATION_STYLES
from scoped_retrieval.pipeline.asking.retrieval import Retrieval
from scoped_retrieval.pipeline.compat import document_004 as knowledge
from scoped_retrieval.pipeline.config.policies import roles as overlays
from scoped_retrieval.pipeline.encoders.openai_encoder import PROBE
from scoped_retrieval.pipeline.views import bundle as models
from scoped_retrieval.pipeline.views.bundle import TABLES_READ, bundle, packet_knowledge

Row = dict[str, Any]

CORPUS: dict[str, Any] = {
    "documents": [
        {
            "document_id": "adr-1", "source_id": "docs:a", "title": "One queue", "trust_tier": "authoritative",
            "document_type": "adr", "updated_at": "2026-01-01T00:00:00Z",
            "chunks": [
                {"chunk_id": "c1", "content": "We decided that payments retry through one queue."},
                {"chunk_id": "c2", "content": "The ledger is a constraint of the queue.", "locator": "Constraints"},
            ],
        },
        {
            "documentId": "forum-1", "sourceId": "external:forum", "sourceType": "external", "trustTier": "untrusted",
            "chunks": [{"chunkId": "c3", "content": "Use two queues for payments, they say."}],
        },
    ],
    "chunks": [{"chunk_id": "c4", "document_id": "adr-1", "content": "Sign-in needs a second factor."}],
}  # fmt: skip
READER = overlay({"source_policy.forbidden_sources": ["external"]})


@pytest.fixture
def store() -> Iterator[knowledge.CorpusStore]:
    with knowledge.CorpusStore(":memory:") as opened:
        assert knowledge.ingest(CORPUS, opened) == {"documents_ingested": 2, "chunks_ingested": 4, "errors": []}
        yield opened


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def ask(store: knowledge.CorpusStore, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"role_id": "reader", "task_text": "why one queue for payments?", "overlay": READER}
    return knowledge.retrieve(store=store, **given | more)


def ids(candidates: Any) -> list[str]:
    return [one["chunk_id"] for one in candidates]


def test_retrieve_gives_a_valid_bundle(store):
    made = ask(store, packet_context_summary="We spoke of payments.")
    assert made["diagnostics"]["latency_ms"] > 0
    assert knowledge.validate_bundle(made)["valid"]
    assert ids(made["selected"])[:2] == ["c1", "c2"]
    assert [(one["chunk_id"], one["reason"]) for one in made["rejected"]] == [("c3", "forbidden_source")]
    assert made["selected"][0]["document_id"] == "adr-1"


def test_names_may_be_written_in_camel_case(store):
    one = knowledge.retrieve(store=store, roleId="reader", taskText="why one queue?", overlay=READER, lexicalOnly=True)
    other = knowledge.retrieve(
        store=store, role_id="reader", task_text="why one queue?", overlay=READER, lexical_only=True
    )
    assert ids(one["selected"])[:2] == ids(other["selected"])[:2] == ["c1", "c2"]
    assert ids(store.searchFTS("queue", limit=1)) == ids(store.search_fts("queue", 1))
    with pytest.raises(TypeError, match="two names"):
        ask(store, taskText="again")


def test_retrieve_can_be_awaited(store):
    made = asyncio.run(
        knowledge.retrieve_async(store=store, role_id="reader", task_text="why one queue?", overlay=READER)
    )
    assert made["selected"]


def test_without_an_overlay_the_shared_corpus_answers(store):
    made = ask(store, overlay=None)
    assert "c3" in ids(made["selected"])
    assert "ONLY_SHARED_CORPUS" in {warning["code"] for warning in made["warnings"]}


def test_an_overlay_of_another_role_is_refused(store):
    with pytest.raises(InputError, match="Expected the overlay of critic, got 'reader'"):
        ask(store, role_id="critic")


@pytest.mark.parametrize("query", ["what's this?", "a-b", 'c++ (x) AND "', "* OR NEAR(", "支払い", ""])
def test_any_text_is_a_query(store, query: str):
    if query:
        assert isinstance(store.search_fts(query), list)
    assert knowledge.build_query(query)["task_text"] == (query or "-")


def test_a_store_in_a_file_keeps_what_was_inserted(tmp_path: Path):
    path = tmp_path / "store.db"
    with knowledge.CorpusStore(path) as opened:
        knowledge.ingest(CORPUS, opened)
        opened.insertEmbedding("c1", [0.0, 1.0], "m")
    with knowledge.CorpusStore(path) as again:
        assert ids(again.search_fts("ledger")) == ["c2"]
        assert again.vectors("m")["c1"].tolist() == [0.0, 1.0]
    (tmp_path / "text.db").write_text("no database at all, but long enough to look")
    with pytest.raises(StoreError, match="Expected a corpus store"):
        knowledge.CorpusStore(tmp_path / "text.db")


def test_a_chunk_inserted_again_is_found_by_its_new_words_only(store):
    store.insert_chunk({"chunk_id": "c2", "document_id": "adr-1", "content": "Nothing but tulips."})
    assert ids(store.search_fts("tulips")) == ["c2"]
    assert "c2" not in ids(store.search_fts("ledger"))


def test_ingestion_names_what_it_leaves_out(store, tmp_path: Path):
    wrong = {"documents": [{"document_id": "d"}], "chunks": [{"chunk_id": "x", "document_id": "d", "content": "t"}, {}]}
    path = tmp_path / "corpus.json"
    path.write_text(json.dumps(wrong))
    done = knowledge.ingest_file(path, store)
    assert (done["documents_ingested"], done["chunks_ingested"]) == (0, 0)
    assert done["errors"][0] == f"Expected a value, got nothing - at {path}: documents[0]: source_id"
    assert any("Expected a document that is there, got 'd'" in error for error in done["errors"])
    path.write_text("{")
    assert "invalid JSON" in knowledge.ingest_file(path, store)["errors"][0]


@pytest.mark.parametrize(
    ("changes", "refused"), [({}, []), ({"source_policy.forbidden_sources": ["external"]}, ["c3"])]
)
def test_the_stages_in_a_row_decide_as_one_retrieval_does(store, changes: dict[str, Any], refused: list[str]):
    task, reader = "why one queue for payments?", overlay(changes)
    whole = ask(store, task_text=task, lexical_only=True, overlay=reader)
    query = knowledge.build_query(task, reader)
    assert query["lexical_query"] == whole["query"]["lexical_query"]
    found = knowledge.merge_candidates(knowledge.lexical_search(store, task), [])
    filtered = knowledge.metadata_filter(found, reader)
    assert [(one["chunk_id"], one["reason"]) for one in filtered["rejected"]] == [
        (id_, "forbidden_source") for id_ in refused
    ]
    ranked = knowledge.rerank(filtered["admitted"], reader, task)
    assert ids(ranked) == ids(whole["selected"])
    if not refused:  # what is forbidden counts in the statistics of a search that knows no overlay
        finals = [chunk["scores"]["final"] for chunk in whole["selected"]]
        assert [one["final"] for one in ranked] == pytest.approx(finals, abs=1e-6)
    assert all(sum(one["scores"].values()) == one["final"] for one in ranked)
    made = knowledge.assemble_bundle({"roleId": "reader", "taskText": task, "overlay": reader, "candidates": found})
    assert knowledge.validate_bundle(made)["valid"]
    assert (ids(made["selected"]), ids(made["rejected"])) == (ids(whole["selected"]), ids(whole["rejected"]))


def test_an_id_with_a_secret_is_refused_when_it_is_inserted(store):
    chunk = {"chunk_id": "password=Sommer2024x", "document_id": "adr-1", "content": "A queue of payments."}
    with pytest.raises(InputError, match=r"got one with a secret - at chunk: chunk_id") as refused:
        store.insert_chunk(chunk)
    assert "Sommer" not in str(refused.value)
    document = {"document_id": "d", "source_id": "docs:a", "conflict_set": "password=Sommer2024x"}
    with pytest.raises(InputError, match=r"at document: conflict_set"):
        store.insert_document(document)
    done = knowledge.ingest({"documents": [], "chunks": [chunk, {**chunk, "chunk_id": "c5"}]}, store)
    assert done["chunks_ingested"] == 1
    assert done["errors"][0].startswith("Expected an id without a secret, got one with a secret - at ")
    assert "c5" in ids(knowledge.lexical_search(store, "payments queue"))


def test_merging_keeps_every_chunk_once_with_both_scores():
    one, two = {"chunk_id": "a", "lexical": 2.0}, {"chunk_id": "b", "lexical": 1.0}
    merged = knowledge.merge_candidates([one, two], [{"chunk_id": "b", "semantic": 0.5}])
    assert [(m["chunk_id"], m["lexical"], m["semantic"]) for m in merged] == [("b", 1.0, 0.5), ("a", 2.0, 0.0)]
    assert knowledge.merge_candidates([], []) == []


def embedded(store: knowledge.CorpusStore, server: ModelServer) -> None:
    """A vector of the server for each chunk."""
    encoder = knowledge.QueryEncoder(knowledge.DEFAULT_MODEL, server.url)
    chunks = [chunk for _, chunk in store.chunks()]
    for chunk, vector in zip(chunks, encoder.encode([chunk.content for chunk in chunks]), strict=True):
        store.insert_embedding(chunk.chunk_id, vector, knowledge.DEFAULT_MODEL)


def test_stored_vectors_are_compared_with_the_servers(store, server: ModelServer):
    assert knowledge.semantic_search(store, "decision on paying", url=server.url) == []
    embedded(store, server)
    assert ids(knowledge.semantic_search(store, "deciding payment", url=server.url))[0] == "c1"
    server.asked.clear()
    made = ask(store, task_text="deciding payment", ollama_url=server.url)
    assert any(chunk["scores"]["semantic"] > 0 for chunk in made["selected"])
    assert set(server.asked) - {PROBE} == {"deciding payment"}
    server.asked.clear()
    ask(store, task_text="deciding payment", ollama_url=server.url, lexical_only=True)
    assert server.asked == []


def test_a_server_that_is_down_costs_a_lane_and_not_the_answer(store, server: ModelServer):
    embedded(store, server)
    server.broken = (503, b"{}")
    made = ask(store, ollama_url=server.url)
    assert made["selected"]
    assert knowledge.validate_bundle(made)["valid"]
    assert made["diagnostics"]["lanes_unavailable"] == ["semantic"]
    (said,) = (one["message"] for one in made["warnings"] if one["code"] == "SEMANTIC_UNAVAILABLE")
    assert "503" in said or "encoder" in said
    server.broken = None
    whole = ask(store, ollama_url=server.url)
    assert whole["diagnostics"]["lanes_unavailable"] == []
    assert "SEMANTIC_UNAVAILABLE" not in {one["code"] for one in whole["warnings"]}


def test_states_are_told_of_what_retrieve_gives(store):
    made = ask(store, overlay=None)
    states = {one["state"]: one["action"] for one in knowledge.fallback_decisions(made)}
    assert states["no_overlay"] == "continue"
    assert knowledge.fallbackDecisions(made) == knowledge.fallback_decisions(made)
    assert json.loads(json.dumps(made)) == made
    quiet = {**made, "warnings": []}
    assert [one["state"] for one in knowledge.fallback_decisions(quiet)] == ["healthy"]


# --- names

FIELDS = {
    "RetrievalBundle": "version role_id query summary selected rejected provenance warnings diagnostics",
    "QueryTrace": "task_text packet_context_summary? lexical_query semantic_query applied_overlay_rules applied_filters generated_at",
    "AppliedFilter": "field op value",
    "RetrievalSummary": "total_candidates selected_count stale_count forbidden_hits trust_tier_breakdown source_breakdown "
    "rerank_strategy",
    "RetrievedChunk": "chunk_id document_id source_id source_type title? uri? content content_type scores reasons_selected "
    "overlay_hits metadata citation",
    "Scores": "lexical semantic metadata rerank final",
    "ChunkMetadata": "trust_tier freshness tags applicable_roles? excluded_roles? document_type? domain? version?",
    "ChunkFreshness": "status updated_at? max_age_days?",
    "Citation": "reference locator?",
    "RetrievalDiagnostics": "latency_ms candidate_pool_size deduped_count dropped_forbidden_count dropped_stale_count "
    "lanes_unavailable?",
    "PacketKnowledge": "retrieval_bundle status",
    "EvidenceProvenance": "source_id document_id chunk_id trust_tier freshness_status citation_reference",
    "FallbackDecision": "state action message",
    "RoleOverlay": "role_id version label mission anti_goals vocabulary source_policy retrieval_policy synthesis_policy "
    "eval_profile bridge_roles?",
    "RoleVocabulary": "preferred_terms synonyms boost_phrases suppress_phrases?",
    "SourcePolicy": "preferred_sources allowed_sources? forbidden_sources? trust_tier_boosts? document_type_boosts? domain_boosts?",
    "PreferredSource": "pattern reason boost?",
    "Weights": "lexical semantic metadata rerank",
    "RetrievalPolicy": "max_selected_chunks weights require_source_diversity? max_chunks_per_source? freshness_max_age_days? "
    "stale_penalty? role_mismatch_penalty?",
    "SynthesisPolicy": "prioritize avoid required_evidence_kinds? citation_style?",
    "EvalProfile": "golden_set_id distinctiveness_checks",
}
"""The fields of each type; `?` follows one that may be left out."""
WORDS = {
    "ContentType": "paragraph table list code excerpt",
    "TrustTier": "authoritative preferred general untrusted",
    "Freshness": "fresh aging stale undated",
    "RejectionReason": "forbidden_source stale low_score role_mismatch duplicate conflict_downrank budget_cut",
    "WarningCode": "NO_HIGH_TRUST_MATCH ONLY_SHARED_CORPUS STALE_DOMINANT FORBIDDEN_SOURCE_HIT LOW_DIVERSITY CONFLICTING_EVIDENCE "
    "SEMANTIC_UNAVAILABLE",  # beside those of the document: its semantic search may fail
    "TrustPosture": "strong mixed weak",
    "FreshnessPosture": "fresh mixed stale",
    "KnowledgeStatus": "strong weak stale conflicted none",
    "FallbackAction": "continue warn degrade block",
    "State": "healthy no_overlay no_strong_match stale_dominant forbidden_hit conflicting",
    "FilterOp": "eq neq in not_in gt lt contains",
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_type_has_the_fields_of_the_document_and_asks_for_those_it_asks_for(name: str) -> None:
    model = getattr(models, name, None) or getattr(overlays, name)
    said = [field if info.is_required() else f"{field}?" for field, info in model.model_fields.items()]
    assert said == FIELDS[name].split()


@pytest.mark.parametrize("name", WORDS)
def test_a_closed_list_has_the_words_of_the_document(name: str) -> None:
    assert list(get_args(getattr(models, name))) == WORDS[name].split()


def test_the_styles_of_citation_are_those_of_the_document() -> None:
    assert list(CITATION_STYLES.values) == ["inline", "footnote", "bundle_only"]


def test_the_arguments_and_defaults_of_retrieve_are_those_of_the_document() -> None:
    told = inspect.signature(knowledge.retrieve).parameters
    missing = inspect.Parameter.empty
    assert {name: one.default for name, one in told.items()} == {
        "store": missing, "role_id": missing, "task_text": missing, "overlay": None, "packet_context_summary": None,
        "lexical_only": False, "embedding_model": "nomic-embed-text", "ollama_url": "http://localhost:11434",
    }  # fmt: skip


# --- words: an unused one would be decoration (S4.13)

TWO = [{"entity": e, "source_id": f"docs:{e}", "text": f"The queue is {e}."} for e in ("up", "down")]
RIVALS = [row | {"conflict_set": "q", "authority": 3} for row in TWO]


def rows(**columns: Iterable[Any]) -> list[Row]:
    """One row about the queue for each value of the columns."""
    names = list(columns)
    return [
        {"entity": str(n), "source_id": f"docs:{n}", "text": f"The queue, part {n}."} | dict(zip(names, values, strict=True))
        for n, values in enumerate(zip(*columns.values(), strict=True))
    ]  # fmt: skip


def audited(found: Retrieval) -> dict[str, Any]:
    return bundle({name: found.tables[name].to_pylist() for name in TABLES_READ}, audit=True)


def told(*overlays: Mapping[str, Any], **how: Any) -> dict[str, Any]:
    return audited(asked(*(overlays or [overlay()]), **how))


def words(name: str) -> set[str]:
    return set(WORDS[name].split())


REJECTED: dict[str, dict[str, Any]] = {
    "forbidden_source": {"changes": {"source_policy.forbidden_sources": ["docs:up"]}, "rows": TWO},
    "role_mismatch": {"rows": [TWO[0], TWO[1] | {"excluded_roles": ["reader"]}]},
    "duplicate": {"rows": [TWO[0], TWO[1] | {"text": TWO[0]["text"]}]},
    "conflict_downrank": {"rows": RIVALS, "budget": {"max_tokens": 100}},
    "budget_cut": {"rows": TWO, "max_items": 1},
    "stale": {"rows": [TWO[0], TWO[1] | {"valid_until": NOW - timedelta(days=1)}]},
    "low_score": {"rows": [TWO[0] | {"authority": 3}, TWO[1]], "min_authority": 2},
}


@pytest.mark.parametrize("reason", sorted(words("RejectionReason")))
def test_every_reason_of_a_rejection(reason: str):
    how = dict(REJECTED[reason])
    made = told(overlay(how.pop("changes", {})), **how)
    disputed = reason == "conflict_downrank"  # the rival that has no room is cut, and the other goes with it
    assert [one["reason"] for one in made["rejected"]] == [reason, *["budget_cut"] * disputed]
    assert len(made["selected"]) == (0 if disputed else 1)
    assert made["summary"]["total_candidates"] == len(made["selected"]) + len(made["rejected"])
    counts = made["diagnostics"]
    assert counts["candidate_pool_size"] == made["summary"]["total_candidates"]
    assert (counts["deduped_count"], counts["dropped_forbidden_count"], counts["dropped_stale_count"]) == (
        reason == "duplicate",
        reason == "forbidden_source",
        reason == "stale",
    )


def test_each_of_several_rejections_has_its_own_reason():
    copies = {"copy": TWO[0]["text"], "near": "The  queue is up."}
    made = told(
        overlay(), rows=[TWO[0], *({"entity": e, "source_id": f"docs:{e}", "text": t} for e, t in copies.items())]
    )
    assert len(made["selected"]) == 1
    assert sorted(one["detail"] for one in made["rejected"]) == ["duplicate", "near_duplicate"]


DAY_AGO = NOW - timedelta(days=1)


@pytest.mark.parametrize(
    ("row", "detail", "reason"),
    [
        ({"lifecycle": "revoked"}, "lifecycle_excluded", "low_score"),
        ({"deleted_at": DAY_AGO}, "deleted", "low_score"),
        ({"superseded_at": DAY_AGO}, "superseded", "stale"),
        ({"valid_until": DAY_AGO}, "expired", "stale"),
    ],
)
def test_stale_is_what_is_out_of_date_and_no_other_exclusion(row: dict[str, Any], detail: str, reason: str):
    states = {"lifecycle": "verified"}
    made = told(overlay(), rows=[TWO[0] | states, TWO[1] | states | row])
    assert [(one["detail"], one["reason"]) for one in made["rejected"]] == [(detail, reason)]
    assert made["diagnostics"]["dropped_stale_count"] == (reason == "stale")


WARNED: dict[str, dict[str, Any]] = {
    "NO_HIGH_TRUST_MATCH": {"rows": TWO},
    "ONLY_SHARED_CORPUS": {"overlays": (), "role": "anybody"},
    "STALE_DOMINANT": {"changes": {"retrieval_policy.freshness_max_age_days": 1.0}, "rows": rows(days=(9, 9))},
    "FORBIDDEN_SOURCE_HIT": REJECTED["forbidden_source"],
    "LOW_DIVERSITY": {"rows": rows(days=(1, 1, 1))},
    "CONFLICTING_EVIDENCE": {"rows": RIVALS},
}


# Of a server that is down there is a test above.
@pytest.mark.parametrize("code", sorted(words("WarningCode") - {"SEMANTIC_UNAVAILABLE"}))
def test_every_code_of_a_warning(code: str):
    how = dict(WARNED[code])
    made = audited(asked(*how.pop("overlays", (overlay(how.pop("changes", {})),)), **how))
    assert code in {one["code"] for one in made["warnings"]}


KNOWN: dict[str, dict[str, Any]] = {
    "strong": {"rows": rows(authority=(3, 3)), "question": "queue part"},
    "weak": {"rows": TWO},
    "stale": {"changes": {"retrieval_policy.freshness_max_age_days": 1.0}, "rows": rows(days=(9, 9), authority=(3, 3))},
    "conflicted": {"rows": RIVALS},
    "none": {"rows": TWO, "question": "an unrelated matter"},
}


@pytest.mark.parametrize("status", sorted(words("KnowledgeStatus")))
def test_every_status_of_knowledge(status: str):
    how = dict(KNOWN[status])
    made = told(overlay(how.pop("changes", {})), vectors=status == "strong", **how)
    assert packet_knowledge(made)["status"] == status


ACTED: dict[str, dict[str, Any]] = {
    "continue": {"rows": rows(authority=(3,)), "question": "queue part", "vectors": True},
    "warn": {"rows": RIVALS},
    "degrade": {"rows": TWO, "max_tokens": 1},
    "block": {"rows": TWO, "allowed_sources": []},
}


@pytest.mark.parametrize("action", sorted(words("FallbackAction")))
def test_every_action(action: str):
    """Of an answer: the document's six states, taken alone, only continue or warn (S4.9)."""
    assert asked(overlay(), **ACTED[action]).action == action
