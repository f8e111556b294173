"""Measures `runlore mcp --http` beside a floor and its peers, all in one run on one machine; prints a table with ratios.

Instructions: user-space, per request, by `valgrind --tool=callgrind` over N keep-alive `tools/call` requests, as the difference between
2 N and N requests, so that start-up does not count. CPU: seconds of the process over the requests served at 64 connections. p50, p99: as
the clients saw them, the median of three repeats. A miss varies an argument; `/metrics` must say as many misses as were asked for. The
targets are for a trivial tool's miss, which a build with the feature `fixtures` has (`--fixtures`); beside it stands that of `runs_list`.
`--soak` instead: resident memory after a million requests from 100,000 addresses, all of them hits or (`--misses`) misses.

Promises: one body, one load program for every server; a bad answer anywhere ends the run with 1.
Does not: judge against the targets unless `--check` is given.
"""

import argparse
import atexit
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import server as servers  # noqa: E402 - the path is set above
PEERS = ROOT / "target/bench-peers"
MODULES = ROOT / "target/bench-npm/node_modules"
CONNECTIONS = 64


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runlore", default=str(ROOT / "target/release/runlore"), help="a release build (default: %(default)s)")
    parser.add_argument("--fixtures", default=str(ROOT / "target/runlore-fixtures"), help="the same with --features fixtures; where it is "
                        "not there, the row of the trivial tool is left out (default: %(default)s)")
    parser.add_argument("--python", default=str(ROOT / "target/test-cache/venv-2x/bin/python"), help="with the official SDK (tests/run installs it)")
    parser.add_argument("--node", default=shutil.which("node"), help="for the TypeScript server")
    parser.add_argument("--era", choices=["modern", "legacy"], default="modern")
    parser.add_argument("--requests", type=int, default=1000, help="N of the instruction count")
    parser.add_argument("--load", type=int, default=20_000, help="requests of each repeat at 64 connections; the slow peers get a tenth")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="names of servers, with commas")
    parser.add_argument("--soak", action="store_true", help="memory after a million requests from 100,000 addresses, and nothing else")
    parser.add_argument("--misses", action="store_true", help="with --soak: each request is another question")
    parser.add_argument("--check", action="store_true", help="exit 1 where a target of the issue is missed")
    return parser.parse_args()


OPTIONS = arguments()
WORK = tempfile.TemporaryDirectory()


def build():
    environment = {**os.environ, "CARGO_TARGET_DIR": str(PEERS)}
    # Not tracked: made from ours, so that what is shared has the same version; cargo takes off what the peers do not need.
    if not (HERE / "peers/Cargo.lock").exists():
        shutil.copy(ROOT / "Cargo.lock", HERE / "peers/Cargo.lock")
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=HERE / "peers", env=environment, check=True)
    same_versions()
    wanted, there = HERE / "package-lock.json", MODULES.parent / "package-lock.json"
    if not MODULES.exists() or wanted.read_text() != there.read_text():
        MODULES.parent.mkdir(parents=True, exist_ok=True)
        for name in ["package.json", "package-lock.json"]:
            shutil.copy(HERE / name, MODULES.parent / name)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=MODULES.parent, check=True)


def same_versions():
    """What the peers share with runlore must be the same, or the ratios compare versions."""
    def versions(path):
        blocks = path.read_text().split("[[package]]")[1:]
        lines = [block.strip().splitlines() for block in blocks]
        return {(line[0].split('"')[1], line[1].split('"')[1]) for line in lines}
    ours, theirs = versions(ROOT / "Cargo.lock"), versions(HERE / "peers/Cargo.lock")
    names = {name for name, _ in ours}
    other = sorted(name for name, version in theirs if name in names and (name, version) not in ours)
    if other:
        sys.exit(f"peers/Cargo.lock has other versions than Cargo.lock of: {' '.join(other)}; remove it and start again")


def project():
    """A project of four runs, whose `runs_list` takes some 1.5 KB, and that is not looked at again while it is measured."""
    home = Path(WORK.name, "project")
    logs = sorted((ROOT / "tests/fixtures/demo/logs").iterdir())[:8]
    (home / "logs").mkdir(parents=True)
    (home / ".runlore").mkdir()
    for log in logs:
        shutil.copy(log, home / "logs" / log.name)
    (home / ".runlore/config.toml").write_text(
        "[index]\nrescan_s = 86400\n[http]\nconnections_max = 256\nper_caller_max = 256\nlight_per_caller = 256\n")
    subprocess.run([OPTIONS.runlore, "runs-list", "--json"], cwd=home, check=True, stdout=subprocess.DEVNULL)
    return home


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One running server."""

    def __init__(self, name, words, home=None, admin=False, under=()):
        self.name, self.port = name, free_port()
        self.admin = free_port() if admin else None
        known = {"PORT": str(self.port), "ADMIN": f"127.0.0.1:{self.admin}"}
        command = [*under, *(known.get(word, word) for word in words)]
        self.log = Path(WORK.name, f"{name.replace(' ', '-')}.log")
        # The peers say it in a word.
        says = servers.RUNLORE if name.startswith("runlore") else b"listening"
        self.process, listens = servers.start(command, says, self.log, 120, cwd=home or WORK.name, env={**os.environ, "RUNLORE_LOG": "error"})
        atexit.register(self.process.kill)
        if not listens:
            sys.exit(f"{name} did not start: {self.log.read_text(errors='replace')[-2000:]}")

    def cpu_seconds(self):
        """The process's own clock (clock_getcpuclockid): ticks of 10 ms are too coarse."""
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def resident_mb(self):
        line = next(line for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def metric(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Bench:
    """What is asked: the same call each time (a hit), or each time another (a miss)."""

    def __init__(self, home):
        flags = ["mcp", "--http", "--port", "PORT", "--admin-listen", "ADMIN"]
        runlore, fixtures = [OPTIONS.runlore, *flags], [OPTIONS.fixtures, *flags]
        rust = PEERS / "release"
        self.servers = {
            "floor": dict(words=[str(rust / "floor"), "PORT"]),
            "bare rmcp": dict(words=[str(rust / "bare_rmcp"), "PORT"]),
            "runlore hit": dict(words=runlore, home=home, admin=True),
            "trivial miss": dict(words=fixtures, home=home, admin=True),
            "runs_list miss": dict(words=runlore, home=home, admin=True),
            "python": dict(words=[OPTIONS.python, str(HERE / "peers/python_server.py"), "PORT"]),
            "typescript": dict(words=[OPTIONS.node, str(HERE / "peers/typescript_server.mjs"), "PORT", str(MODULES), OPTIONS.era]),
        }
        if not Path(OPTIONS.fixtures).exists():
            del self.servers["trivial miss"]
        only = [name for name in OPTIONS.only.split(",") if name]
        self.servers = {name: how for name, how in self.servers.items() if not only or name in only}

    def ask(self, server, connections, requests, first=0, head=""):
        """`first` keeps the misses of one call apart from those of the call before."""
        # A time before all runs; for a miss another one each time.
        since = f"2019-01-01T00:00:00.{first:02}@N@Z" if "miss" in server.name else "2019-01-01T00:00:00Z"
        arguments = {"limit": 4, "since": since}
        tool = "trivial" if "trivial" in server.name else "runs_list"
        params = {"name": tool, "arguments": arguments}
        lines = ["POST /mcp HTTP/1.1", f"host: 127.0.0.1:{server.port}", "content-type: application/json",
                 "accept: application/json, text/event-stream", "user-agent: bench"]
        if OPTIONS.era == "modern":
            params["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
                               "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"}}
            lines += ["mcp-protocol-version: 2026-07-28", "mcp-method: tools/call", f"mcp-name: {tool}"]
        else:
            lines.append("mcp-protocol-version: 2025-11-25")
        files = Path(WORK.name, "head"), Path(WORK.name, "body")
        files[0].write_text("\r\n".join(lines) + "\r\n" + head)
        files[1].write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
        ran = subprocess.run([PEERS / "release/load", str(server.port), str(connections), str(requests), *map(str, files)],
                             capture_output=True, text=True, check=False)
        said = json.loads(ran.stdout or "{}")
        if ran.returncode != 0 or said.get("bad") or said.get("broken") or said.get("requests") != requests:
            sys.exit(f"{server.name}: {ran.stdout}{ran.stderr}\n{server.log.read_text(errors='replace')[-2000:]}")
        return said

    def instructions(self, name):
        """Per request; nothing for what valgrind cannot follow fairly (a JIT, an interpreter)."""
        if name in ("python", "typescript"):
            return None
        sums = []
        for index, times in enumerate([1, 2]):
            out = Path(WORK.name, f"callgrind-{index}.out")
            under = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--error-limit=no"]
            server = Server(name, under=under, **self.servers[name])
            # The caches of the first requests are no part of either sum.
            self.ask(server, 1, 100, first=90)
            self.ask(server, 1, OPTIONS.requests * times, first=index)
            server.stop()
            text = out.read_text(errors="replace")
            found = [line for line in text.splitlines() if line.startswith(("totals:", "summary:"))]
            if not found:
                sys.exit(f"{name}: valgrind wrote no sum: {server.log.read_text(errors='replace')[-2000:]}")
            sums.append(int(found[-1].split()[1]))
        return (sums[1] - sums[0]) / OPTIONS.requests

    def load(self, name):
        server = Server(name, **self.servers[name])
        count = OPTIONS.load if name not in ("python", "typescript") else max(OPTIONS.load // 10, 200)
        self.ask(server, CONNECTIONS, max(count // 10, CONNECTIONS), first=80)
        misses = server.metric("runlore_cache_misses_total") if server.admin else 0
        repeats = []
        for repeat in range(OPTIONS.repeats):
            before = server.cpu_seconds()
            said = self.ask(server, CONNECTIONS, count, first=10 + repeat)
            repeats.append({**said, "cpu_us": (server.cpu_seconds() - before) / count * 1e6})
        if server.admin:
            seen = server.metric("runlore_cache_misses_total") - misses
            asked = count * OPTIONS.repeats if "miss" in name else 0
            if seen != asked:
                sys.exit(f"{name}: /metrics says {seen} misses, and {asked} were asked for")
        resident = server.resident_mb()
        server.stop()
        median = lambda key: statistics.median(repeat[key] for repeat in repeats)
        return {"cpu_us": median("cpu_us"), "p50_us": median("p50_us"), "p99_us": median("p99_us"), "bytes": repeats[0]["bytes"], "rss_mb": resident}


def table(rows):
    floor = rows.get("floor", {})
    ratio = lambda row, key: f"{row[key] / floor[key]:.2f} x" if row.get(key) and floor.get(key) else "-"
    number = lambda value, form: "-" if value is None else format(value, form)
    lines = [["server", "instructions", "", "CPU us", "", "p50 us", "p99 us", "bytes", "RSS MB"]]
    for name, row in rows.items():
        lines.append([name, number(row["instructions"], ",.0f"), ratio(row, "instructions"), number(row["cpu_us"], ",.1f"), ratio(row, "cpu_us"),
                      number(row["p50_us"], ",.0f"), number(row["p99_us"], ",.0f"), str(row["bytes"]), number(row["rss_mb"], ".1f")])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(zip(line, widths))))


def missed(rows):
    """The targets of the issue that do not hold."""
    has = lambda *names: all(name in rows for name in names)
    said = []
    def hold(good, words):
        if not good:
            said.append(words)
    for name, most in [("runlore hit", 100_000), ("trivial miss", 135_000)]:
        if not has(name):
            continue
        row = rows[name]
        hold(row["instructions"] <= most, f"{name}: {row['instructions']:,.0f} instructions, at most {most:,}")
        if has("bare rmcp"):
            bare = rows["bare rmcp"]
            hold(row["cpu_us"] <= bare["cpu_us"] / 2, f"{name}: {row['cpu_us'] / bare['cpu_us']:.2f} of bare rmcp's CPU, at most 0.5")
            hold(row["p99_us"] <= bare["p99_us"] * 1.1, f"{name}: {row['p99_us'] / bare['p99_us']:.2f} of bare rmcp's p99, at most 1.1")
        for peer in ("python", "typescript"):
            if has(peer):
                hold(row["cpu_us"] * 10 <= rows[peer]["cpu_us"], f"{name}: {peer} takes {rows[peer]['cpu_us'] / row['cpu_us']:.1f} x its CPU, at least 10")
    return said


def soak(bench):
    name = "runs_list miss" if OPTIONS.misses else "runlore hit"
    how = {**bench.servers[name]}
    how["words"] = [*how["words"], "--client-header", "X-Forwarded-For", "--request-rate", "600", "--rate", "120"]
    server = Server(name, **how)
    began = time.monotonic()
    for part in range(10):
        bench.ask(server, CONNECTIONS, 100_000, first=part, head="x-forwarded-for: @A@\r\n")
        print(f"{(part + 1) * 100_000:,} requests, {time.monotonic() - began:.0f} s: {server.resident_mb():.1f} MB", flush=True)
    # What is measured is memory after half a minute without a request; a server that ends meanwhile is noticed.
    try:
        sys.exit(f"the server ended by itself with {server.process.wait(30)}")
    except subprocess.TimeoutExpired:
        pass
    resident = server.resident_mb()
    print(f"30 s later: {resident:.1f} MB (under 60)")
    server.stop()
    return [] if resident < 60 else [f"{resident:.1f} MB resident, under 60"]


def main():
    build()
    bench = Bench(project())
    if OPTIONS.soak:
        complaints = soak(bench)
    else:
        rows = {}
        for name in bench.servers:
            print(f"measuring {name}", file=sys.stderr, flush=True)
            rows[name] = {"instructions": bench.instructions(name), **bench.load(name)}
        table(rows)
        complaints = missed(rows)
    for complaint in complaints:
        print(f"missed: {complaint}")
    sys.exit(1 if complaints and OPTIONS.check else 0)


main()
