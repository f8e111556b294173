"""Measures what a declared command costs beyond its child: CPU of the server per call, over keep-alive HTTP.

The server's own user and system time (its children's is counted apart by the system, once they are reaped), over N calls of `true` and of a
command that prints 100 KB of JSON, as the difference between 2 N and N calls. On a public server the same calls again are hits: then nothing
is started, which the number of children that ran says.

Promises: a bad answer ends the run with 1.
Does not: judge against the targets unless `--check` is given.
"""

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("--runlore", default=str(ROOT / "target/release/runlore"))
PARSER.add_argument("--calls", type=int, default=500, help="N")
PARSER.add_argument("--check", action="store_true", help="exit 1 where a target is missed")
OPTIONS = PARSER.parse_args()
CALL_CPU_MS_MAX, HIT_CPU_MS_MAX = 3.0, 0.5
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
LARGE = json.dumps({"rows": [{"number": number, "text": "some words of a row"} for number in range(2000)]}, indent=1)

DECLARED = """
[[command]]
name = "nothing"
description = "Does nothing."
program = "true"
public = true
[[command]]
name = "large"
description = "Prints 100 KB of JSON."
program = "cat"
args = ["large.json"]
output = "json"
public = true
"""


class Server:
    def __init__(self, *flags):
        self.place = Path(tempfile.mkdtemp(prefix="runlore-commands-"))
        (self.place / ".runlore").mkdir()
        (self.place / ".runlore/config.toml").write_text("[http]\nidle_s = 60\n" + DECLARED)
        (self.place / "large.json").write_text(LARGE)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        words = [OPTIONS.runlore, "mcp", "--http", "--port", str(self.port), "--toolsets", "commands", *flags]
        self.process = subprocess.Popen(words, cwd=self.place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    sys.exit("the server does not start")
                time.sleep(0.02)
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port)

    def call(self, tool):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
        self.connection.request("POST", "/mcp", body, headers)
        result = json.loads(self.connection.getresponse().read())["result"]
        if result["isError"] or (tool == "large" and len(result["structuredContent"]["rows"]) != 2000):
            sys.exit(f"{tool}: {result}")

    def times(self):
        """CPU of the server and of its children, in ms."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        own, children = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        return own * TICK_MS, children * TICK_MS

    def per_call(self, tool):
        self.call(tool)
        spent = []
        for count in (OPTIONS.calls, 2 * OPTIONS.calls):
            before = self.times()
            for _ in range(count):
                self.call(tool)
            spent.append([after - earlier for earlier, after in zip(before, self.times())])
        return [max(0, twice - once) / OPTIONS.calls for once, twice in zip(*spent)]

    def end(self):
        self.process.terminate()
        self.process.wait()


def main():
    missed = []
    print(f"{'':34}{'server, ms':>12}{'child, ms':>12}")
    for flags, title, most in (((), "a call", CALL_CPU_MS_MAX), (("--public", "--rate", "0", "--rate-total", "0", "--request-rate", "0"), "a repeated public call", HIT_CPU_MS_MAX)):
        server = Server(*flags)
        for tool in ("nothing", "large"):
            own, child = server.per_call(tool)
            print(f"{title + ' of ' + tool:34}{own:12.3f}{child:12.3f}")
            if own > most or (flags and child > 0.001):
                missed.append(f"{title} of {tool}")
        server.end()
    if missed and OPTIONS.check:
        sys.exit("missed: " + ", ".join(missed))


main()
