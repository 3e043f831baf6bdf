"""The names that document 004 gives its types, fields and words, as this package declares them."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest
from scoped_retrieval.nodes.vocabulary import CITATION_STYLES
from scoped_retrieval.pipeline.compat import document_004 as knowledge
from scoped_retrieval.pipeline.config.policies import roles as overlays
from scoped_retrieval.pipeline.views import bundle as models

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
