#!/usr/bin/env python3
"""CPU seconds (user + system) and peak memory of `runlore import FILE` on a 50 MB promptfoo result and a 20 MB JUnit file, beside Python's own
parser (json.loads, xml.etree) over the same bytes, in one run.

    python3 tests/bench/import_formats.py [--binary FILE] [--check]

The files (target/bench/formats) are made where they are missing. A fresh project each time; three times, the median. Build first:
cargo build --release
"""

import argparse
import json
import multiprocessing
import random
import shutil
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import child

PEAK_MB_MAX = 200.0
WORDS = "the of and a in to it is was that for on with as by at from his her they be this have or had not are but what all were when we".split()
JSON = "import json, sys\njson.loads(open(sys.argv[1], encoding='utf-8').read())\n"
XML = "import sys, xml.etree.ElementTree\nxml.etree.ElementTree.parse(sys.argv[1])\n"


def text(source, words):
    return " ".join(source.choices(WORDS, k=words))


def row(source, number):
    passed = number % 3 != 0
    check = {"pass": passed, "score": float(passed), "reason": text(source, 12), "assertion": {"type": "contains", "value": "x"}}
    question = text(source, 60)
    return {
        "id": f"row-{number}", "promptIdx": 0, "testIdx": number, "promptId": "p", "success": passed, "score": float(passed), "latencyMs": 12,
        "failureReason": 0 if passed else 1, "cost": 0.001, "provider": {"id": "echo", "label": "echo"},
        "prompt": {"raw": f"Answer: {question}", "label": "Answer: {{question}}"}, "vars": {"question": question, "number": number},
        "response": {"output": text(source, 120), "tokenUsage": {"total": 200, "prompt": 80, "completion": 120}},
        "gradingResult": {"pass": passed, "score": float(passed), "reason": "r", "componentResults": [check, check]},
        "testCase": {"vars": {"question": question, "number": number}, "assert": [{"type": "contains", "value": "x"}] * 2},
    }


def promptfoo(path, megabytes):
    source, rows, size = random.Random(1), [], 0
    while size < megabytes * 1e6:
        rows.append(row(source, len(rows)))
        size += len(json.dumps(rows[-1]))
    stats = {"successes": sum(one["success"] for one in rows), "failures": sum(not one["success"] for one in rows), "errors": 0}
    results = {"version": 3, "timestamp": "2026-02-01T00:00:00.000Z", "prompts": [{"raw": "p", "label": "p", "provider": "echo", "id": "p"}], "results": rows, "stats": stats}
    path.write_text(json.dumps({"evalId": "eval-abc-2026-02-01T00:00:00", "results": results, "config": {"description": "made"}}))


def junit(path, megabytes):
    source, size, number = random.Random(2), 0, 0
    with open(path, "w", encoding="utf-8") as out:
        out.write('<?xml version="1.0" encoding="utf-8"?>\n<testsuites><testsuite name="made" timestamp="2026-02-01T00:00:00+00:00">\n')
        while size < megabytes * 1e6:
            case = f'<testcase classname="tests.test_{number % 50}" name="test_{number}" time="0.012">'
            if number % 3 == 0:
                case += f"<failure message={quoteattr('assert ' + text(source, 10))}>{escape(text(source, 80))}</failure>"
            case += f"<system-out>{escape(text(source, 40))}</system-out></testcase>\n"
            out.write(case)
            size, number = size + len(case), number + 1
        out.write("</testsuite></testsuites>\n")


def imported(binary, path, work):
    project = Path(tempfile.mkdtemp(dir=work))
    try:
        return child.run([binary, "import", "--project", project, path], cwd=project)
    finally:
        shutil.rmtree(project)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--binary", type=Path, default=child.ROOT / "target/release/runlore")
    args.add_argument("--repeats", type=int, default=3)
    args.add_argument("--check", action="store_true", help="exit with 1 when one is slower than Python's parser or takes too much memory")
    args = args.parse_args()
    folder = child.ROOT / "target/bench/formats"
    folder.mkdir(parents=True, exist_ok=True)
    rows, all_met = [], True
    with tempfile.TemporaryDirectory(prefix="runlore-bench-") as work:
        for name, make, megabytes, read in [("promptfoo.json", promptfoo, 50, JSON), ("junit.xml", junit, 20, XML)]:
            path = folder / name
            if not path.exists():
                # In a process of its own: what a child is measured by begins with what its parent holds.
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    pool.apply(make, (path, megabytes))
            ours, theirs = [], []
            for _ in range(args.repeats):
                ours.append(imported(args.binary.resolve(), path, work))
                theirs.append(child.run([sys.executable, "-c", read, path]))
            cpu, other, peak = child.median(ours), child.median(theirs), max(used.peak_mb for used in ours)
            met, mb = cpu <= other and peak < PEAK_MB_MAX, path.stat().st_size / 1e6
            all_met &= met
            attempts = ours[0].out.split(" attempts read")[0].rsplit(" ", 1)[-1]
            rows.append([name, f"{mb:.1f}", attempts, f"{cpu:.3f}", f"{mb / cpu:.0f}", f"{other:.3f}", f"{mb / other:.0f}", f"{other / cpu:.2f}", f"{child.wall(ours):.3f}", f"{child.wall(theirs):.3f}", f"{peak:.0f}", child.verdict(met)])
    child.table(["file", "MB", "attempts", "runlore s", "MB/s", "python s", "MB/s", "ratio", "wall s", "python wall", "peak MB", f">= 1x, < {PEAK_MB_MAX:.0f} MB"], rows)
    sys.exit(1 if args.check and not all_met else 0)


if __name__ == "__main__":
    main()
