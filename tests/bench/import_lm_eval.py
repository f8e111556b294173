#!/usr/bin/env python3
"""CPU seconds (user + system) and peak memory of `runlore import FOLDER` on results of lm-eval with many samples, beside Python's json.loads
over the lines of the same samples, in one run.

    python3 tests/bench/import_lm_eval.py [--docs 100000] [--filters 2] [--binary FILE] [--check]

The folder (target/bench/lm-eval-DOCS-FILTERS) is made where it is missing: all docs of the first filter, then all of the next, as the harness
writes them. A fresh project each time; three times, the median. Build first: cargo build --release
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from pathlib import Path

import child

PEAK_MB_MAX = 200.0
STAMP = "2026-02-01T00-00-00.000000"
FILTERS = ["strict-match", "flexible-extract", "third", "fourth"]
WORDS = "the of and a in to it is was that for on with as by at from his her they be this have or had not are but what all were when we".split()
READ = "import json, sys\nfor line in open(sys.argv[1], encoding='utf-8'):\n    json.loads(line)\n"


def text(source, words):
    return " ".join(source.choices(WORDS, k=words)) + f" {source.random()}\n"


def line(doc, name, question, answer):
    digest = f"{doc:064x}"
    return {
        "doc_id": doc, "doc": {"question": question, "answer": doc % 7}, "target": str(doc % 7),
        "arguments": {"gen_args_0": {"arg_0": f"Q: {question}\nA:", "arg_1": {"until": ["\n"], "do_sample": False, "temperature": 0.0}}},
        "resps": [[answer]], "filtered_resps": [answer[:20]], "filter": name, "metrics": ["exact_match"], "doc_hash": digest,
        "prompt_hash": digest, "target_hash": digest, "exact_match": float(doc % 2),
    }


def made(folder, docs, names):
    """The results and the samples of one task."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    source = random.Random(1)
    said = [(text(source, 60), text(source, 80)) for _ in range(docs)]
    with open(folder / f"samples_task_{STAMP}.jsonl", "w", encoding="utf-8") as out:
        for name in names:
            for doc, (question, answer) in enumerate(said):
                out.write(json.dumps(line(doc, name, question, answer), ensure_ascii=False) + "\n")
    results = {
        "results": {"task": {"alias": "task"} | {f"exact_match,{name}": 0.5 for name in names}},
        "configs": {"task": {"metric_list": [{"metric": "exact_match"}], "filter_list": [{"name": name} for name in names]}},
        "versions": {"task": 1.0}, "n-samples": {"task": {"original": docs, "effective": docs}}, "model_name": "org/model",
        "config": {"model": "hf", "model_args": "pretrained=org/model"}, "date": 1769904000.0,
    }
    (folder / f"results_{STAMP}.json").write_text(json.dumps(results, indent=2))


def imported(binary, folder, work):
    project = Path(tempfile.mkdtemp(dir=work))
    try:
        return child.run([binary, "import", "--project", project, folder], cwd=project)
    finally:
        shutil.rmtree(project)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--binary", type=Path, default=child.ROOT / "target/release/runlore")
    args.add_argument("--docs", type=int, default=100_000)
    args.add_argument("--filters", type=int, default=2, choices=range(1, len(FILTERS) + 1))
    args.add_argument("--repeats", type=int, default=3)
    args.add_argument("--check", action="store_true", help="exit with 1 when it is slower than json.loads or takes too much memory")
    args = args.parse_args()
    folder = child.ROOT / f"target/bench/lm-eval-{args.docs}-{args.filters}"
    made(folder, args.docs, FILTERS[: args.filters])
    samples = folder / f"samples_task_{STAMP}.jsonl"
    ours, theirs = [], []
    with tempfile.TemporaryDirectory(prefix="runlore-bench-") as work:
        # Side by side, so that a machine that slows down slows both.
        for _ in range(args.repeats):
            ours.append(imported(args.binary.resolve(), folder, work))
            theirs.append(child.run([sys.executable, "-c", READ, samples]))
    if f"{args.docs} attempts read" not in ours[0].out:
        raise SystemExit(f"not every doc became an attempt: {ours[0].out}")
    cpu, loads, peak = child.median(ours), child.median(theirs), max(used.peak_mb for used in ours)
    met, mb = cpu <= loads and peak < PEAK_MB_MAX, samples.stat().st_size / 1e6
    heads = ["docs", "lines", "MB", "runlore s", "MB/s", "json.loads s", "MB/s", "ratio", "wall s", "json.loads wall", "peak MB", f">= 1x, < {PEAK_MB_MAX:.0f} MB"]
    row = [
        args.docs, args.docs * args.filters, f"{mb:.1f}", f"{cpu:.3f}", f"{mb / cpu:.0f}", f"{loads:.3f}", f"{mb / loads:.0f}", f"{loads / cpu:.2f}",
        f"{child.wall(ours):.3f}", f"{child.wall(theirs):.3f}", f"{peak:.0f}", child.verdict(met),
    ]
    child.table(heads, [row])
    sys.exit(1 if args.check and not met else 0)


if __name__ == "__main__":
    main()
