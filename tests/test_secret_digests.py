"""No stored or shown value is a digest of bytes with a secret: whoever reads a masked row could guess it offline."""

from __future__ import annotations

import hashlib
import json
import zlib
from itertools import chain
from pathlib import Path

import pytest
import xxhash
from repositories import committed
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.corpus import Corpus

from .support.command_line import run

SECRET = "DB_PASSWORD=hunter29"
LINE = f"{SECRET}\n"
EVENT = '{"id": "e1", "type": "user.message", "createdAt": "2026-05-20T08:00:00Z", "text": "use DB_PASSWORD\\u003dhunter29"}'
MEMORY = (
    '{"id": "m1", "status": "verified", "createdAt": "2026-05-20T08:00:00Z", "text": "use DB_PASSWORD=hunter29 here"}'
)
FILES = {
    "shop/deploy.env": LINE,
    "shop/notes.md": f"# Deploy\n\n{LINE}",
    "shop/run.log": f"2026-05-20T08:00:00Z deploy {LINE}",
    "standards/rule.md": f"# Rule\n\nNever print\n\n{LINE}",
    "records/hosts.csv": "id,note\n1,DB_PASSWORD=hunter29\n",
    "sessions.jsonl": f"{EVENT}\n",
    "memory.jsonl": f"{MEMORY}\n",
}
FLAGS = (
    "--add", "standards=standards", "--add", "sot=records", "--add", "sessions=sessions.jsonl", "--add", "memory=memory.jsonl",
    "--add", "artifacts=shop/run.log",
)  # fmt: skip


def digests_of(raw: bytes) -> set[str]:
    """The first digits of every common digest of some bytes, hex and as a number."""
    blob = b"blob %d\0" % len(raw) + raw
    named = [
        hashlib.new(name, data) for name in ("sha256", "sha1", "md5", "blake2b", "sha3_256") for data in (raw, blob)
    ]
    named += [hashlib.blake2b(raw, digest_size=size) for size in (8, 16, 32)]
    found = {digest.hexdigest() for digest in named}
    found |= {xxhash.xxh3_64_hexdigest(raw), xxhash.xxh3_128_hexdigest(raw), xxhash.xxh64_hexdigest(raw)}
    return {digest[:8] for digest in found} | {f"{zlib.crc32(raw):08x}"}


def raw_parts() -> set[bytes]:
    texts = [*FILES.values(), EVENT, MEMORY, SECRET, "hunter29"]
    lines = list(chain.from_iterable(text.splitlines(keepends=True) for text in texts))
    return {
        form.encode() for text in [*texts, *lines] for form in (text, text.strip(), text.strip() + "\n") if form.strip()
    }


def everything(*shown: str) -> str:
    """All names and bytes of corpus and runs, tables decoded as well, and what was shown."""
    parts = list(shown)
    settings = load_settings()
    for name in ("corpus", "runs"):
        for path in sorted(Path(settings[name]).rglob("*")):
            parts.append(str(path))
            if path.is_file():
                data = path.read_bytes()
                parts += [data.decode("latin-1"), data.hex()]
    frame = Corpus.open(settings["corpus"]).frame()
    parts += [json.dumps(table.to_pylist(), default=repr) for table in (frame.evidence, frame.placements)]
    return "\n".join(parts)


@pytest.mark.parametrize("history", [False, True], ids=["work tree", "history"])
def test_no_stored_or_shown_value_is_a_digest_of_a_secret(history, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    if history:
        committed(tmp_path / "shop")
        (tmp_path / "shop/deploy.env").write_text(LINE * 2)
    flags = ("--history",) if history else ()
    assert run("index", "shop", *flags, *FLAGS, "--project", "shop", "--no-semantic", capsys=capsys)[0] == 0
    shown = run("ask", "deploy password rule", "--project", "shop", "--json", capsys=capsys)
    assert shown[0] == 0 and "[REDACTED:" in shown[1]
    stored = everything(*shown[1:])
    parts = {*raw_parts(), (LINE * 2).encode()}
    told = [(part, digest) for part in parts for digest in digests_of(part) if digest in stored]
    assert not told
    assert "hunter29" not in stored
