"""The table of `context_messages`."""

from __future__ import annotations

from ..schema import boolean, int64, string, strings, table, text

MODEL_INPUTS = table(
    "model_inputs",
    key=("input_id",),
    order=("input_id",),
    persist=True,
    doc="The model inputs: what the model reads of each turn.",
    input_id=string("the model input"),
    status=string("ok or over_budget"),
    system_text=text("first message: what may instruct; the same bytes as long as rules, goal and constraints are"),
    user_text=text("second message: state, observations, tail, evidence, hints, references"),
    tools=strings("names of the visible tools, in their order"),
    tool_schemas=text("their schemas, one JSON object per line"),
    input_sha256=string("SHA-256 of the neutral form as UTF-8; empty inputs have one as well"),
    prefix_sha256=string("SHA-256 of the first message"),
    tokens=int64(
        "tokens of both messages and the schemas; for a failed turn, of all that it requires, which exceeds the limit"
    ),
    part_tokens=strings("`part=tokens` of the same for the eight parts, fences and headings in `frame`"),
    tokenizer=string("name of the counter"),
    upper_bound=boolean("the counter estimates the model's: the count is an upper bound"),
    input_limit=int64("tokens that the input may have"),
    snapshot_ids=strings("retrieval snapshots whose items it was offered"),
)

ModelInputs = MODEL_INPUTS.annotation
