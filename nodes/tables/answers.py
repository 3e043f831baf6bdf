"""Tables of `answers`: an answer compared with the items it was given."""

from __future__ import annotations

from ..schema import boolean, caller, int32, int64, string, table, text

ANSWER_FINDINGS = table(
    "answer_findings",
    key=("finding", "byte_start", "byte_end", "subject"),
    order=("byte_start", "byte_end", "finding", "subject"),
    doc="What an answer says that the visible bytes of its snapshot do not support, and what it leaves unused.",
    finding=caller(
        string(
            "unknown_citation, changed_quote, misattributed_quote, unsupported_value, contradicted_fact, "
            "partly_shown, unfounded_action, unused_evidence"
        )
    ),
    wrong=caller(boolean("false: worth knowing, no defect of the answer")),
    subject=caller(text("the words of the answer; of unused evidence its label")),
    label=caller(string("the citation it concerns", nullable=True)),
    expected=caller(text("what the visible evidence says instead", nullable=True)),
    line=caller(int32("line of the answer, from 1; 0 = the answer as a whole")),
    byte_start=caller(int64("first byte in the answer")),
    byte_end=caller(int64("end byte in the answer, exclusive")),
)

AnswerFindings = ANSWER_FINDINGS.annotation
