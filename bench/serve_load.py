"""Clients that ask a server at the same time for a minute: answers, errors, lost snapshots, throughput, latency.

    python bench/serve_load.py [--clients 50] [--seconds 60] [--record]

The server is a process of its own over this repository, lexical and symbol lanes; every answer is a snapshot on disk before it
leaves. The clients are threads of one other process on the same cores, each on one connection, each asking the next question as
soon as it has an answer. At the end the server gets SIGTERM, and every snapshot that was answered must be there and verify.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from bench_records import ROOT, environment

RESULTS = ROOT / "data" / "results" / "serve.jsonl"
QUESTIONS = (
    "how is the budget of a block kept", "who may read a snapshot", "what does verify check", "where are tokens compared",
    "how are candidates ranked", "which gate stops another project", "how does a run become durable", "what is a contract",
    "how are secrets masked on import", "how is a citation bound to its text",
)  # fmt: skip
LANES = "lexical,symbol,exact,expansion"


def started(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """A server over an index of this repository, and its port."""
    command = [sys.executable, "-m", "scoped_retrieval.pipeline.cli"]
    env = {**os.environ, "SCOPED_RETRIEVAL_PRINCIPAL": "ana", "XDG_CONFIG_HOME": str(folder)}
    index = [*command, "index", str(ROOT), "--project", "self", "--source", "self", "--no-semantic"]
    subprocess.run(index, cwd=folder, env=env, check=True, capture_output=True)
    process = subprocess.Popen(
        [*command, "serve", "--port", "0", "-c", f"lanes={LANES}"],
        cwd=folder,
        env=env,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "running on http://127.0.0.1:" in line:
            port = int(line.split("http://127.0.0.1:")[1].split()[0])
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, port
    raise SystemExit("the server did not start")


class Client(threading.Thread):
    """Asks until the end, and keeps what it got."""

    def __init__(self, number: int, port: int, until: float) -> None:
        super().__init__(daemon=True)
        self.number, self.port, self.until = number, port, until
        self.seconds: list[float] = []
        self.snapshots: list[str] = []
        self.errors: list[str] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        while time.perf_counter() < self.until:
            asked = len(self.seconds) + len(self.errors) + self.number
            body = json.dumps({"question": f"{QUESTIONS[asked % len(QUESTIONS)]} {asked}", "project": "self"})
            at = time.perf_counter()
            try:
                connection.request("POST", "/v1/retrieve", body)
                answer = connection.getresponse()
                found = json.loads(answer.read())
                if answer.status != 200 or found["status"] != "ok":
                    self.errors.append(f"{answer.status} {found.get('code', found.get('status'))}")
                    continue
                self.snapshots.append(found["snapshot_id"])
                self.seconds.append(time.perf_counter() - at)
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(type(error).__name__)
                connection.close()


def measured(clients: int, seconds: int) -> dict[str, object]:
    """One measurement as a record."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        process, port = started(folder)
        try:
            warm = Client(0, port, time.perf_counter() + 2)
            warm.run()
            begun = time.perf_counter()
            threads = [Client(number, port, begun + seconds) for number in range(clients)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            took = time.perf_counter() - begun
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(120)
        env = {**os.environ, "SCOPED_RETRIEVAL_PRINCIPAL": "ana", "XDG_CONFIG_HOME": str(folder)}
        command = [sys.executable, "-m", "scoped_retrieval.pipeline.cli"]
        listed = subprocess.run(
            [*command, "log", "-n", "0", "--json"], cwd=folder, env=env, check=True, capture_output=True
        )
        stored = {row["snapshot_id"] for row in json.loads(listed.stdout)}
        verified = subprocess.run(
            [*command, "verify"], cwd=folder, env=env, check=False, capture_output=True
        ).returncode
    answered = [name for one in [warm, *threads] for name in one.snapshots]
    latencies = np.array([value for one in threads for value in one.seconds]) * 1000
    errors = [error for one in threads for error in one.errors]
    return {
        "clients": clients,
        "seconds": round(took, 1),
        "answered": len(latencies),
        "errors": len(errors),
        "kinds_of_errors": sorted(set(errors)),
        "lost_snapshots": len(set(answered) - stored),
        "twice_the_same_snapshot": len(answered) - len(set(answered)),
        "verify_exit_code": verified,
        "server_exit_code": code,
        "requests_per_second": round(len(latencies) / took, 1),
        **{f"p{share}_ms": round(float(np.percentile(latencies, share)), 1) for share in (50, 90, 99)},
        "max_ms": round(float(latencies.max()), 1),
        "lanes": LANES,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--record", action="store_true", help=f"append to {RESULTS.relative_to(ROOT)}")
    given = parser.parse_args()
    command = f"python bench/serve_load.py --clients {given.clients} --seconds {given.seconds}"
    record = {**measured(given.clients, given.seconds), **environment(command)}
    print(json.dumps(record, indent=2))
    if given.record:
        with RESULTS.open("a", encoding="utf-8") as out:
            out.write(json.dumps(record, sort_keys=True) + "\n")
    sys.exit(1 if record["errors"] or record["lost_snapshots"] or record["verify_exit_code"] else 0)


if __name__ == "__main__":
    main()
