#!/usr/bin/env python3
"""promptfoo runs a small suite offline, and `runlore import` must count what promptfoo itself counts. Not part of tests/run.

    python3 tests/bench/promptfoo_agrees.py PACKAGE [--binary BINARY]

PACKAGE is the directory of promptfoo's npm package (`node_modules/promptfoo`; tried with 0.121.20, whose `libsql` wants its platform's package
beside it). BINARY is target/debug/runlore unless said otherwise. The provider is a script that answers at once, breaks or answers at random, so
nothing leaves the machine and no two runs are alike. Compared are the counts of JSON and JSONL and each column's own counts, and all of it again
after `--retry-errors`. Exits with 1 where the two differ.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROVIDER = """
const fs = require('fs');
class Provider {
  constructor(options) { this.options = options; }
  id() { return 'file://provider.js'; }
  async callApi(prompt, context) {
    const { mode, q } = context.vars;
    if (mode === 'late' && !fs.existsSync('late')) return { error: 'API error: 503' };
    if (mode === 'throw') throw new Error('the provider exploded');
    const output = mode === 'random' && Math.random() < 0.5 ? 'London' : 'Paris ' + q;
    return { output, tokenUsage: { total: 12, prompt: 10, completion: 2 }, cost: 0.001 };
  }
}
module.exports = Provider;
"""

CONFIG = {
    "description": "offline agreement",
    "prompts": ["First: {{q}}", "Second: {{q}}"],
    "providers": [{"id": "file://provider.js", "label": label} for label in ("one", "two")],
    "tests": [
        {"vars": {"q": "a", "mode": "ok"}, "assert": [{"type": "contains", "value": "Paris"}]},
        {"vars": {"q": ["b", "c", "d"], "mode": "random"}, "assert": [{"type": "contains", "value": "Paris", "metric": "capital"}]},
        {"vars": {"q": "e", "mode": "late"}, "assert": [{"type": "contains", "value": "Paris"}]},
        {"vars": {"q": "f", "mode": "throw"}},
        {"description": "highest", "vars": {"q": "g", "mode": "random"}, "assert": [{"type": "contains", "value": "Paris"}, {"type": "max-score"}]},
        {"vars": {"q": "h", "mode": "ok"}, "threshold": 0.9, "assert": [{"type": "contains", "value": value} for value in ("Paris", "London")]},
    ],
}


def promptfoo(package, work, *words):
    settings = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CONFIG_DIR": str(work / "promptfoo")}
    command = ["node", package / "dist/src/main.js", "eval", "--no-cache", "--no-table", "--no-progress-bar", *words]
    ran = subprocess.run(command, cwd=work, env={**os.environ, **settings}, capture_output=True, text=True, timeout=300)
    # 100 is promptfoo's own word for "some tests failed".
    if ran.returncode not in (0, 100):
        sys.exit(f"promptfoo ended with {ran.returncode}:\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}")


def runlore(binary, work, file):
    """The run's counts and each arm's, as runlore has them."""
    project = Path(tempfile.mkdtemp(dir=work))
    for words in (["import", file], ["show", "--json", "--limit", "1000"]):
        ran = subprocess.run([binary, *words], cwd=project, capture_output=True, text=True, timeout=300)
        if ran.returncode != 0:
            sys.exit(f"runlore {words[0]}: {ran.stdout}{ran.stderr}")
    show = json.loads(ran.stdout)
    triple = lambda counts: (counts["passed"], counts["failed"], counts["infra"])
    return triple(show["counts"]), Counter(triple(cell["counts"]) for eval in show["evals"] for cell in eval["cells"])


def agrees(binary, work, name):
    """Whether both files of the evaluation have promptfoo's own counts."""
    results = json.loads((work / "out.json").read_text())["results"]
    stats = results["stats"]
    theirs = (stats["successes"], stats["failures"], stats["errors"])
    keys = ("testPassCount", "testFailCount", "testErrorCount")
    columns = Counter(tuple(prompt["metrics"][key] for key in keys) for prompt in results["prompts"])
    # `--retry-errors` of 0.121.20 adds the columns once more, and its rows and columns then disagree on which is whose.
    plain = len({(prompt["provider"], prompt["label"]) for prompt in results["prompts"]}) == len(results["prompts"])
    same = True
    for file in ("out.json", "out.jsonl"):
        ours, arms = runlore(binary, work, work / file)
        good = ours == theirs and (arms == columns or not plain)
        same &= good
        print(f"{name:<14} {file:<10} promptfoo {theirs} runlore {ours} {'agree' if good else 'DIFFER: ' + str((columns, arms))}")
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("package", type=Path)
    parser.add_argument("--binary", type=Path, default=ROOT / "target/debug/runlore")
    arguments = parser.parse_args()
    package, binary = arguments.package.resolve(), arguments.binary.resolve()
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        (work / "provider.js").write_text(PROVIDER)
        (work / "config.json").write_text(json.dumps(CONFIG))
        outputs = ["-o", "out.json", "-o", "out.jsonl"]
        promptfoo(package, work, "-c", "config.json", "--repeat", "3", *outputs)
        same = agrees(binary, work, "repeat 3")
        (work / "late").touch()
        promptfoo(package, work, "--retry-errors", *outputs)
        same &= agrees(binary, work, "retry errors")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
