#!/usr/bin/env python3
"""CPU milliseconds (user + system) of looking again at 1,000 unchanged logs, beside an empty project and a bare scandir and stat.

    python3 tests/bench/local.py [--files N] [--check]

Makes N small logs in a project of its own under target/bench, has them indexed once, and measures whole processes: `runlore runs-list`, and
`runlore mcp` from its start over initialize, tools/list and one call of history to its end. Eleven times each, the median. Standard library
only. Build first: cargo build --release
"""

import argparse
import datetime
import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path

import child

CPU_MS_MAX = 50.0
TIMES = 11


def log(number):
    """One small valid log of Inspect's JSON recorder: ten tasks a run."""
    task, run = f"task_{number % 10}", f"run{number // 10:04}"
    created = (datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(hours=number // 10)).isoformat()
    letter = "I" if (number * 7919) % 10 == 0 else "C"
    samples = [
        {
            "id": case, "epoch": 1, "input": f"question {case}", "target": "yes",
            "messages": [{"role": "user", "content": f"question {case}"}, {"role": "assistant", "content": f"answer {letter}"}],
            "output": {"model": "mockllm/model", "choices": [], "completion": f"answer {letter}"},
            "scores": {"match": {"value": letter, "answer": letter, "explanation": f"said {letter}"}},
            "metadata": {}, "store": {}, "events": [], "attachments": {},
            "model_usage": {"mockllm/model": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}},
        }
        for case in (1, 2)
    ]
    return {
        "version": 2, "status": "success",
        "eval": {
            "eval_id": f"eval{number:06}", "run_id": run, "created": created, "task": task, "task_id": f"{run}-{task}", "task_version": 0,
            "dataset": {"name": task, "samples": 2, "sample_ids": [1, 2]}, "model": "mockllm/model", "model_args": {}, "task_args": {},
            "config": {"epochs": 1}, "packages": {"inspect_ai": "0.3.285"}, "revision": None,
            "scorers": [{"name": "match", "options": {}, "metrics": [], "metadata": {}}],
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {"total_samples": 2, "completed_samples": 2, "scores": [{"name": "match", "scorer": "match", "params": {}, "metrics": {}}]},
        "stats": {"started_at": created, "completed_at": created, "model_usage": {}},
        "samples": samples,
    }


def project(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / ".runlore").mkdir(parents=True)
    (folder / "logs").mkdir()
    for number in range(files):
        (folder / "logs" / f"{number:06}.json").write_text(json.dumps(log(number)))
    return folder


def conversation(stdin, stdout):
    """What a client says first; the answer to the call."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    said = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
        {"id": 3, "method": "tools/call", "params": {"name": "history", "arguments": {}}},
    ]
    for message in said:
        stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        stdin.flush()
        if "id" in message:
            answer = json.loads(stdout.readline())
            assert answer["id"] == message["id"] and "result" in answer, answer
    assert not answer["result"].get("isError"), answer
    return answer["result"]


def scan(folder):
    began = time.process_time()
    seen = sum(entry.stat().st_size > 0 for entry in os.scandir(folder / "logs"))
    return seen, time.process_time() - began


def times(measure):
    measure()  # the file system's caches
    return sorted(measure() * 1000 for _ in range(TIMES))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--binary", type=Path, default=child.ROOT / "target/release/runlore")
    args.add_argument("--files", type=int, default=1000)
    args.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    args = args.parse_args()
    binary, work = args.binary.resolve(), child.ROOT / "target/bench"
    full, empty = project(work / "local", args.files), project(work / "local-empty", 0)

    def runs_list(at):
        return child.run([binary, "runs-list", "--limit", "1", "--json", "--project", at])

    first = runs_list(full)
    total = json.loads(first.out)["total"]
    assert total == -(-args.files // 10), f"indexed {total} runs"
    runs_list(empty)

    def serve(at):
        return child.run([binary, "mcp", "--project", at], talk=conversation)

    rows = [["index them the first time", f"{first.cpu_s * 1000:.1f}", "-", "-", f"{first.peak_mb:.0f}", "-"]]
    missed = False
    for name, target, measure in [
        (f"runs-list, {args.files} logs", CPU_MS_MAX, lambda: runs_list(full)),
        ("runs-list, no logs", None, lambda: runs_list(empty)),
        (f"mcp to the first answer, {args.files} logs", CPU_MS_MAX, lambda: serve(full)),
        ("mcp to the first answer, no logs", None, lambda: serve(empty)),
        ("runlore --version", None, lambda: child.run([binary, "--version"])),
    ]:
        peaks = []

        def once():
            used = measure()
            peaks.append(used.peak_mb)
            return used.cpu_s

        spent = times(once)
        middle = statistics.median(spent)
        missed |= target is not None and middle >= target
        shown = "-" if target is None else f"{target:.0f} {child.verdict(middle < target)}"
        rows.append([name, f"{middle:.1f}", f"{spent[0]:.1f}", f"{spent[-1]:.1f}", f"{max(peaks):.0f}", shown])
    spent = times(lambda: scan(full)[1])
    rows.append([f"python scandir + stat, {scan(full)[0]} files", f"{statistics.median(spent):.1f}", f"{spent[0]:.1f}", f"{spent[-1]:.1f}", "-", "-"])
    child.table(["what", "CPU ms", "best", "worst", "peak MB", "target ms"], rows)
    sys.exit(1 if args.check and missed else 0)


if __name__ == "__main__":
    main()
