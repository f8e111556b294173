"""Runs the official conformance suite's server scenarios against runlore.

Without the fixtures: the scenarios that any server can pass (any-server-*.txt). With them: all that a revision requires, for 2025-11-25 all but
the baseline (stateless-2025-11-25.yaml).

Promises: each scenario that ran counts once; a required one that did not run counts as failed; the last line is `N passed, N failed`.
Does not: install anything (tests/run does) or judge what the suite itself never scores.
"""

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import server as servers  # noqa: E402 - the path is set above

SECONDS_MAX = 300
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--node", required=True, type=os.path.abspath)
    parser.add_argument("--suite", required=True, type=os.path.abspath, help="dist/index.js of @modelcontextprotocol/conformance")
    parser.add_argument("--plain", required=True, type=os.path.abspath, help="runlore as it is shipped")
    parser.add_argument("--fixtures", required=True, type=os.path.abspath, help="runlore built with the feature `fixtures`")
    return parser.parse_args()


class Server:
    """`runlore mcp --http` over an empty project on a free port."""

    def __init__(self, binary):
        self.binary = binary
        self.project = tempfile.TemporaryDirectory()
        Path(self.project.name, ".runlore").mkdir()

    def __enter__(self):
        for _ in range(5):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            words = [self.binary, "mcp", "--http", "--port", str(port)]
            self.process, listens = servers.start(words, servers.RUNLORE, Path(self.project.name, "stderr.log"), 20, cwd=self.project.name)
            if listens:
                self.url = f"http://127.0.0.1:{port}/mcp"
                return self
            # Another took the port, or it hangs: another port, another process.
            self.process.kill()
            self.process.wait()
        said = Path(self.project.name, "stderr.log").read_text(errors="replace")
        sys.exit(f"{self.binary} did not start: {said}")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.project.cleanup()


def only_needs_fixtures(said):
    """Whether all that a scenario misses are tools that only its fixtures have: then it has nothing against this server."""
    failures = len(re.findall(r"\] FAILURE ", said))
    untestable = len(re.findall(r"Error: Not testable: server does not list the diagnostic tool", said))
    return failures > 0 and failures == untestable


class Suite:
    def __init__(self, options):
        self.command = [options.node, options.suite]
        self.environment = {**os.environ, "NO_COLOR": "1"}
        self.results = tempfile.TemporaryDirectory()
        self.passed, self.failed = 0, 0

    def run(self, *words):
        ran = subprocess.run([*self.command, *words], capture_output=True, text=True, timeout=SECONDS_MAX, cwd=self.results.name,
                             env=self.environment, check=False)
        return ran.returncode, COLOURS.sub("", ran.stdout + ran.stderr)

    def count(self, revision, scenario, good, said):
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        if not good:
            print(f"FAILED {revision} {scenario}\n{said}\n", flush=True)

    def one_by_one(self, url, revision):
        """The scenarios of any-server-REVISION.txt, each as the suite's own exit code says."""
        for scenario in (HERE / f"any-server-{revision}.txt").read_text().split():
            code, said = self.run("server", "--url", url, "--scenario", scenario, "--spec-version", revision)
            good = "Test Results:" in said and (code == 0 or only_needs_fixtures(said))
            self.count(revision, scenario, good, said)

    def required(self, url, revision, baseline):
        """All that the revision requires, but for the baseline."""
        _, listed = self.run("list", "--server", "--requirements", revision)
        wanted = re.findall(r"^  - (\S+)$", listed.split("Client scenarios")[0].split("Run and reported")[0], re.MULTILINE)
        excused = re.findall(r"^ +- (\S+)", baseline.read_text(), re.MULTILINE) if baseline else []
        options = ["--expected-failures", str(baseline)] if baseline else []
        _, said = self.run("server", "--url", url, "--requirements", revision, *options)
        for scenario in wanted:
            if scenario not in excused:
                good = re.search(rf"^✓ {re.escape(scenario)}:", said, re.MULTILINE) is not None
                unexpected = re.search(rf"^ +✗ {re.escape(scenario)}$", said, re.MULTILINE) is not None
                why = "" if good else self.run("server", "--url", url, "--scenario", scenario, "--spec-version", revision)[1]
                self.count(revision, scenario, good and not unexpected, why)
        if not wanted:
            self.count(revision, "the list of what is required", False, listed)


def main():
    options = arguments()
    suite = Suite(options)
    with Server(options.plain) as server:
        for revision in ["2025-11-25", "2026-07-28"]:
            suite.one_by_one(server.url, revision)
    with Server(options.fixtures) as server:
        suite.required(server.url, "2025-11-25", HERE / "stateless-2025-11-25.yaml")
        suite.required(server.url, "2026-07-28", None)
    print(f"{suite.passed} passed, {suite.failed} failed")
    sys.exit(0 if suite.failed == 0 else 1)


main()
