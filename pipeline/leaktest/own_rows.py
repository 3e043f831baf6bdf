"""What no row of others can show: secrets and control characters in a tenant's own rows, and a corpus that was set back.

Reads: a row that a tenant was shown. Gives: leaks, of a copy of the corpus in which three things are planted. A made-up token
and a private key, line by line in rows of their own: no file of the corpus may hold them. Characters that act on a terminal:
no block may hold one. The pointer of before the publication, and a changed manifest: opening must refuse both.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from ...nodes.columns.hidden_characters import escape
from ...nodes.errors import ScopedRetrievalError
from ...nodes.tables import IMPORT_ROWS
from ..corpus import Corpus
from ..sources.importing import normalise
from ..storage.durable import copy_tree
from .angles import LEAK_TEST
from .batches import Bench
from .canaries import Case, base_of
from .report import Leak, LeakReport
from .tenants import Tenant

__all__ = ["CHECKS", "own_rows"]

CHECKS = ("secrets", "terminals", "heads")
_MARK = "zqown"
_ACTING = "\x1b]0;zq\x07\x1b[2J\u202e\u200b\x9b31m"
_LINES = 24


def own_rows(bench: Bench, tenant: Tenant, case: Case, report: LeakReport) -> Iterator[Leak]:
    """What the planted things show that they should not; the report names a check that saw nothing."""
    bench.tell("secrets, control characters and heads")
    at = bench.folder / "own"
    copy_tree(bench.pristine, at)
    pointer = (at / "CURRENT").read_bytes()
    secrets = [_token(), *_key()]
    rows, _ = normalise(
        _planted(case, bench, secrets), project=tenant.project, principal=tenant.principal, now=bench.now
    )
    Corpus.open(at).publish(rows, now=bench.now, encoder=bench.encoder)

    def leak(surface: str, kind: str, detail: str) -> Leak:
        return Leak(tenant.principal, tenant.project, case.angle.name, "own rows", "own rows", surface, kind, detail)

    evidence = Corpus.open(at).frame([tenant.project], tenant.users).evidence
    stored = "\n".join(text for name in ("text", "title") for text in evidence[name].to_pylist() if text)
    if left := [secret for secret in secrets if secret in stored]:
        yield leak("corpus", "a secret", f"{len(left)} of {len(secrets)} planted ones were stored")
    question = {"question": f"{_MARK}act {case.words}", "project": tenant.project, "purpose": "answer-question",
                "principal": tenant.principal, "request_id": "own", "time": {"as_of": bench.as_of.isoformat()}}  # fmt: skip
    (block,) = bench.ask(at, [question], bench.folder / "runs-own").table("blocks", texts=True)["text"].to_pylist()
    if f"{_MARK}act" not in (block or ""):
        report.skipped.append(f"{tenant.name}: the planted control characters were not shown")
    if escape(block or "") != (block or ""):
        yield leak("block", "a control character", "a character that acts on a terminal or hides is in a block")
    for what in _accepted(at, pointer):
        yield leak("heads", "an accepted change", what)


def _accepted(at: Path, before: bytes) -> Iterator[str]:
    """Changes to the heads of a corpus that opening it does not refuse."""
    now = (at / "CURRENT").read_bytes()
    manifest = at / "generations" / f"{now.split()[0].decode()}.json"
    said = manifest.read_bytes()
    changes: Mapping[str, tuple[Path, bytes]] = {
        "a pointer that was set back": (at / "CURRENT", before),
        "a manifest that was changed": (manifest, said + b" "),
    }
    for what, (file, content) in changes.items():
        kept = file.read_bytes()
        file.write_bytes(content)
        try:
            Corpus.open(at)
            yield what
        except ScopedRetrievalError:
            pass
        finally:
            file.write_bytes(kept)


def _planted(case: Case, bench: Bench, secrets: list[str]) -> pa.Table:
    """Rows beside the one that was shown, which its tenant may see."""
    base = base_of(case, bench.as_of) | {
        "recorded_time": bench.now - timedelta(hours=1),
        "source_refs": None,
        "symbols": None,
    }
    own = {"section": LEAK_TEST, "entity": None, "title": None}
    rows = [base | own | {"text": f"{_MARK}act {case.words} {_ACTING}", "title": f"{_MARK}{_ACTING}"}]
    rows += [
        base | own | {"text": secret, "line_start": line, "line_end": line} for line, secret in enumerate(secrets, 2)
    ]
    return IMPORT_ROWS.from_rows([{**row, "occurrence": None} for row in rows])


def _token() -> str:
    """A token of a known form that was never issued."""
    return "ghp_" + base64.b32encode(hashlib.sha256(LEAK_TEST.encode()).digest()).decode()[:36].title()


def _key() -> list[str]:
    """Lines of what begins as an RSA key does and continues with digests."""
    noise = b"".join(hashlib.sha256(f"{LEAK_TEST}{n}".encode()).digest() for n in range(2 * _LINES))
    encoded = base64.b64encode(bytes.fromhex("3082092802010002820201") + noise).decode()
    return [encoded[at : at + 64] for at in range(0, 64 * _LINES, 64)]
