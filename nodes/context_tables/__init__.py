"""Every table of the context policy, declared once: the inputs of a projection and the outputs of its steps.

Reads: nothing. Gives: one `Table` per input and node (`LOG_EVENTS`, `CONTEXT_SOURCES`, ...) and its annotation, and
`CONTEXT_TABLES`, all of them by name. Tables about the session log start with `session_id`, and `seq` counts its events
from 0; tables about turns start with `input_id`, one model input.

- `inputs`: the inputs of a projection: the session log, turns, policies, rules, memories, items of retrieval, tools
- `state`: tables of `context_state`
- `sources`: tables of `context_sources`, `context_selection` and `context_ordering`
- `fitting`: tables of `context_compression`, `context_isolation` and `context_budget`
- `messages`: the table of `context_messages`
- `ledger`: tables of `context_ledger`
"""

from __future__ import annotations

from ..schema import Table
from . import fitting, inputs, ledger, messages, sources, state
from .fitting import COMPRESSED, FITTED, ISOLATED, Compressed, Fitted, Isolated
from .inputs import (
    CONTEXT_TURNS,
    LOG_EVENTS,
    LOG_MATCHES,
    MEMORY_RECORDS,
    PHASE_POLICIES,
    RETRIEVED_ITEMS,
    RULE_TEXTS,
    TOOL_SCHEMAS,
    ContextTurns,
    LogEvents,
    LogMatches,
    MemoryRecords,
    PhasePolicies,
    RetrievedItems,
    RuleTexts,
    ToolSchemas,
)
from .ledger import CONTEXT_DECISIONS, TURN_WARNINGS, ContextDecisions, TurnWarnings
from .messages import MODEL_INPUTS, ModelInputs
from .sources import CONTEXT_SOURCES, ORDERING, SELECTION, ContextSources, Ordering, Selection
from .state import STATE_FACTS, TURN_STATES, StateFacts, TurnStates

CONTEXT_TABLES = {
    each.name: each
    for module in (inputs, state, sources, fitting, messages, ledger)
    for each in vars(module).values()
    if isinstance(each, Table)
}
"""Every table of the context policy by name."""

__all__ = [
    "COMPRESSED",
    "CONTEXT_DECISIONS",
    "CONTEXT_SOURCES",
    "CONTEXT_TABLES",
    "CONTEXT_TURNS",
    "FITTED",
    "ISOLATED",
    "LOG_EVENTS",
    "LOG_MATCHES",
    "MEMORY_RECORDS",
    "MODEL_INPUTS",
    "ORDERING",
    "PHASE_POLICIES",
    "RETRIEVED_ITEMS",
    "RULE_TEXTS",
    "SELECTION",
    "STATE_FACTS",
    "TOOL_SCHEMAS",
    "TURN_STATES",
    "TURN_WARNINGS",
    "Compressed",
    "ContextDecisions",
    "ContextSources",
    "ContextTurns",
    "Fitted",
    "Isolated",
    "LogEvents",
    "LogMatches",
    "MemoryRecords",
    "ModelInputs",
    "Ordering",
    "PhasePolicies",
    "RetrievedItems",
    "RuleTexts",
    "Selection",
    "StateFacts",
    "ToolSchemas",
    "TurnStates",
    "TurnWarnings",
]
