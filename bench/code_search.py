"""Code search beside semble and ripgrep: annotated questions over whole repositories, in one session.

    python bench/code_search.py DATA WORK [--every N]

DATA is a folder with `repos.json`, `trees.parquet` (repo, path, bytes) and `annotations/NAME.json` in the form of the
public benchmark of semble (MinishLab, MIT). Needs `semble` in this environment and `rg` on the path. Prints, as means of
the repositories: nDCG@10 by file, the share of targets shown within a budget of tokens, CPU seconds to index
a repository (ours with the start of a process) and CPU milliseconds a warm question (ours with its snapshot).

Note: the embedding model of semble has to be downloaded, so its ranking runs over BM25 alone here, and ours without vectors. ripgrep
has no ranking: files are ordered by how many of the question's words they contain, as an agent would search.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scoped_retrieval.nodes.blocks.token_counting import Counters
from scoped_retrieval.pipeline.asking.retriever import Retriever
from semble.index import SembleIndex
from semble.index.create import create_index_from_path

BUDGETS = (500, 1000, 2000, 4000)
PURPOSE = "explain-code"
PLACE = re.compile(r"^\[[\w-]+#\d+\] (\S+?)(?::[\d,-]+)?(?: .*)?$", re.MULTILINE)

Files = list[str]
Asked = Callable[[str], tuple[Files, dict[int, Files]]]
"""Answers a question: files in order, and the files shown within each budget."""


class NoModel:
    """In place of semble's embedding model: no text is near another."""

    dim = 1

    def encode(self, texts: Sequence[str], **_: object) -> np.ndarray:
        """A vector of zeros for each text."""
        return np.zeros((len(texts), 1), dtype=np.float32)


def within(found: Sequence[tuple[str, str]], counters: Counters) -> dict[int, Files]:
    """The files of the first results whose texts fit each budget together."""
    sizes = counters.get("approx-bpe/1").count(pa.array([text for _, text in found], pa.large_string())).cumsum()
    return {
        budget: [path for (path, _), size in zip(found, sizes, strict=True) if size <= budget] for budget in BUDGETS
    }


def ours(tree: Path, work: Path) -> Asked:
    """This project: an index in a process of its own, then a retriever."""
    corpus = str(work / "corpus")
    command = [
        str(Path(sys.executable).with_name("scoped-retrieval")),
        "index",
        str(tree),
        "-p",
        "q",
        "--corpus",
        corpus,
    ]
    subprocess.run([*command, "--no-semantic"], check=True, capture_output=True)
    retriever = Retriever.open(corpus, principal="root", runs=str(work / "runs"), grants=f"{corpus}/grants.yaml")

    def ask(question: str) -> tuple[Files, dict[int, Files]]:
        request = {"question": question, "project": "q", "purpose": PURPOSE}
        shown = {size: retriever.retrieve(request, budget={"max_tokens": size}).block for size in (*BUDGETS, 8000)}
        files = {size: PLACE.findall(block) for size, block in shown.items()}
        return files[8000], files

    return ask


def semble(tree: Path, counters: Counters) -> Asked:
    """semble's chunks, BM25 and ranking."""
    words, vectors, chunks, _ = create_index_from_path(tree, NoModel(), display_root=tree)
    index = SembleIndex(NoModel(), words, vectors, chunks, "none")

    def ask(question: str) -> tuple[Files, dict[int, Files]]:
        found = [(one.chunk.file_path, one.chunk.content) for one in index.search(question, top_k=50, alpha=0.0)]
        return [path for path, _ in found], within(found, counters)

    return ask


def ripgrep(tree: Path, counters: Counters) -> Asked:
    """Files that contain words of the question; each is read whole."""

    def ask(question: str) -> tuple[Files, dict[int, Files]]:
        hits = Counter[str]()
        for word in set(re.findall(r"\w{3,}", question.lower())):
            done = subprocess.run(
                ["rg", "-liF", "--", word, "."], cwd=tree, capture_output=True, text=True, check=False
            )
            hits.update(line.removeprefix("./") for line in done.stdout.splitlines())
        files = [path for path, _ in sorted(hits.items(), key=lambda one: (-one[1], one[0]))][:50]
        return files, within([(path, (tree / path).read_text(errors="replace")) for path in files], counters)

    return ask


def matches(found: str, target: str) -> bool:
    """Whether both are one file, seen from different roots."""
    return found == target or found.endswith(f"/{target}") or target.endswith(f"/{found}")


def ndcg(files: Files, targets: Files) -> float:
    """nDCG@10 with binary gains; a target counts at the first file that matches it."""
    distinct = list(dict.fromkeys(files))
    ranks = [next((n for n, file in enumerate(distinct) if matches(file, target)), 10) for target in targets]
    ideal = sum(1 / math.log2(n + 2) for n in range(min(10, len(targets))))
    return sum(1 / math.log2(n + 2) for n in set(ranks) if n < 10) / ideal


def cpu() -> float:
    """CPU seconds of this process and those that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--every", type=int, default=1, help="measure every Nth repository")
    asked, counters, rows = parser.parse_args(), Counters(), []
    for spec in json.loads((asked.data / "repos.json").read_bytes())[:: asked.every]:
        name = spec["name"]
        work, tree = asked.work / name, asked.work / name / "tree"
        for row in pq.read_table(asked.data / "trees.parquet", filters=[("repo", "=", name)]).to_pylist():
            (tree / row["path"]).parent.mkdir(parents=True, exist_ok=True)
            (tree / row["path"]).write_bytes(row["bytes"])
        questions = json.loads((asked.data / "annotations" / f"{name}.json").read_bytes())
        systems = {
            "scoped-retrieval": lambda: ours(tree, work),  # noqa: B023 - called in this round
            "semble without its model": lambda: semble(tree, counters),  # noqa: B023 - called at once
            "ripgrep": lambda: ripgrep(tree, counters),  # noqa: B023 - called at once
        }
        for system, built in systems.items():
            began = cpu()
            ask = built()
            indexed, spent = cpu() - began, []
            ask(questions[0]["query"])
            for one in questions:
                targets = [target if isinstance(target, str) else target["path"] for target in one["relevant"]]
                began = time.process_time() if system != "ripgrep" else cpu()
                files, shown = ask(one["query"])
                spent.append((time.process_time() if system != "ripgrep" else cpu()) - began)
                share = {
                    size: np.mean([any(matches(file, target) for file in shown[size]) for target in targets])
                    for size in BUDGETS
                }
                rows.append({"repo": name, "system": system, "nDCG@10": ndcg(files, targets), **share})
            asks = len(BUDGETS) + 1 if system == "scoped-retrieval" else 1
            for row in rows[-len(questions) :]:
                row |= {
                    "CPU s to index": indexed,
                    "CPU ms a question": np.median(spent) * 1000 / asks,
                }
        print(name, file=sys.stderr)
    means = pd.DataFrame(rows).groupby(["system", "repo"]).mean(numeric_only=True).groupby("system").mean()
    print(means.round(3).T.to_string())


if __name__ == "__main__":
    main()
