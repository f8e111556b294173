"""Measures `runlore serve` with many organizations: what a credential costs, 1,000 organizations in a minute, a storm of logins, a noisy neighbour.

Instructions: user-space, per request, by `valgrind --tool=callgrind` over N keep-alive `tools/call` of `whoami`, as the difference between 2 N
and N requests: with a static token (one project), with an API key, and with a JWT that is known already; a first JWT by itself. Memory: what RSS
grows by when as many organizations again were asked for and are idle, for each of these. p99: of one quiet caller, alone and while another
organization floods; the median of three repeats.

Promises: a bad answer anywhere ends the run with 1.
Does not: judge against the targets unless `--check` is given.
"""

import argparse
import asyncio
import hashlib
import json
import multiprocessing
import secrets
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("--runlore", default=str(ROOT / "target/release/runlore"))
PARSER.add_argument("--organizations", type=int, default=2000)
PARSER.add_argument("--requests", type=int, default=1000, help="N of the instruction count")
PARSER.add_argument("--check", action="store_true", help="exit 1 where a target of the issue is missed")
OPTIONS = PARSER.parse_args()
WORK = Path(tempfile.mkdtemp(prefix="runlore-tenants-"))
ISSUER, AUDIENCE = "https://runlore.example", "runlore"


def run(*words):
    done = subprocess.run([OPTIONS.runlore, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{words}: {done.stderr}")
    return done.stdout.strip()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def peopled(data):
    """Organizations with a project and a key each; the first by the command line, the rest as it would write them."""
    run("org", "create", "o0", "--data-dir", data)
    run("project", "create", "o0/main", "--data-dir", data)
    keys = [run("key", "create", "o0", "--name", "bench", "--data-dir", data)]
    base = sqlite3.connect(data / "control.db")
    for number in range(1, OPTIONS.organizations):
        key = "rlk_" + secrets.token_urlsafe(32)
        organization = base.execute("INSERT INTO organizations_m (slug, created_at) VALUES (?, 0)", (f"o{number}",)).lastrowid
        base.execute("INSERT INTO projects_m (organization_no, slug, id, public, created_at) VALUES (?, 'main', ?, 0, 0)",
                     (organization, secrets.token_hex(12)))
        base.execute("INSERT INTO keys_m (id, organization_no, name, digest, role, scopes, created_at) VALUES (?, ?, 'b', ?, 'viewer', 'eval:read', 0)",
                     (f"k{number}", organization, hashlib.sha256(key.encode()).digest()))
        keys.append(key)
    base.commit()
    base.close()
    return keys


class Server:
    """A running server; `under` stands before its command."""

    def __init__(self, words, under=(), http="", tenants="", auth=""):
        self.port, self.admin = free_port(), free_port()
        config = WORK / f"{self.port}.toml"
        limits = "rate_per_min = 0\nrate_total_per_min = 0\nrequest_rate_per_min = 0\nper_caller_max = 512\nconnections_max = 1024\nidle_s = 60"
        config.write_text(f"[http]\nport = {self.port}\n{limits}\n{http}\n[admin]\nlisten = \"127.0.0.1:{self.admin}\"\n{tenants}\n{auth}\n")
        self.process = subprocess.Popen([*under, OPTIONS.runlore, "serve", "--config", config, *words], cwd=WORK, stdout=subprocess.DEVNULL,
                                        stderr=(WORK / f"{self.port}.log").open("w"))
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    sys.exit((WORK / f"{self.port}.log").read_text())
                time.sleep(0.05)

    def rss_kib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=300)


def request(key, tool="whoami", path="/mcp"):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
    return (f"POST {path} HTTP/1.1\r\nHost: localhost:PORT\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


class Client:
    """One connection."""

    def __init__(self, port):
        self.port = port

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def ask(self, bytes_, status=200):
        began = time.perf_counter()
        self.writer.write(bytes_.replace(b"PORT", str(self.port).encode(), 1))
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        body = await self.reader.readexactly(length)
        took = time.perf_counter() - began
        found = int(head.split(b" ")[1])
        if status and (found != status or b'"isError":true' in body):
            sys.exit(f"{found}: {body[:400]}")
        return took

    def close(self):
        self.writer.close()


def instructions(words, key, **config):
    """Per request, of N after N."""
    counted = []
    for number in (OPTIONS.requests, 2 * OPTIONS.requests):
        out = WORK / f"callgrind.{number}"
        server = Server(words, under=["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"], **config)

        async def load():
            client = await Client(server.port).open()
            for _ in range(number):
                await client.ask(request(key))
            client.close()

        asyncio.run(load())
        server.end()
        counted.append(next(int(line.split()[1]) for line in out.read_text().splitlines() if line.startswith(("totals:", "summary:"))))
    return (counted[1] - counted[0]) / OPTIONS.requests


def p99(times):
    return sorted(times)[int(len(times) * 0.99)]


async def touched(server, keys):
    """Every organization once, over eight connections."""
    began, left = time.perf_counter(), list(keys)

    async def worker():
        client = await Client(server.port).open()
        while left:
            await client.ask(request(left.pop(), "runs_list"))
        client.close()

    await asyncio.gather(*(worker() for _ in range(8)))
    return time.perf_counter() - began


async def storm(server, keys):
    """All at once, each on a connection of its own."""
    async def login(key):
        client = await Client(server.port).open()
        took = await client.ask(request(key))
        client.close()
        return took

    return await asyncio.gather(*(login(key) for key in keys))


async def waits(server, key):
    client = await Client(server.port).open()
    times = []
    for _ in range(1000):
        times.append(await client.ask(request(key, "runs_list")))
        await asyncio.sleep(0.001)
    client.close()
    return p99(times)


def flood(port, key):
    """As fast as it goes, over eight connections, until it is killed."""
    async def one():
        client = await Client(port).open()
        while True:
            await client.ask(request(key, "runs_list"), status=None)

    async def all_of_them():
        await asyncio.gather(*(one() for _ in range(8)))

    asyncio.run(all_of_them())


def quiet(server, key, noisy=None):
    """How long one caller waits, while another floods from a process of its own where there is one."""
    other = multiprocessing.Process(target=flood, args=(server.port, noisy)) if noisy else None
    if other:
        other.start()
    try:
        return asyncio.run(waits(server, key))
    finally:
        if other:
            other.kill()
            other.join()


def main():
    data = WORK / "data"
    keys = peopled(data)
    tenants = f"[tenants]\ndata_dir = \"{data}\"\nidle_s = 2"
    rows, missed = [], []

    def row(what, figure, target, good):
        rows.append((what, figure, target))
        if not good:
            missed.append(what)

    server = Server([], tenants=tenants + "\nrate_per_min = 12000")
    half = len(keys) // 2
    took = asyncio.run(touched(server, keys[:half]))
    open_kib = server.rss_kib()
    time.sleep(5)  # idle projects close after two seconds
    before = server.rss_kib()
    asyncio.run(touched(server, keys[half:]))
    time.sleep(5)
    idle = (server.rss_kib() - before) / (len(keys) - half)
    row(f"{half} organizations asked for", f"{took:.1f} s", "60 s", took < 60)
    row("memory with as many open as may be", f"{open_kib / 1024:.0f} MB", "", True)
    row("memory of each once idle", f"{idle:.1f} KiB", "200 KiB", idle < 200)
    waits = asyncio.run(storm(server, keys[:500]))
    row("500 logins at once: median / longest", f"{statistics.median(waits) * 1000:.0f} / {max(waits) * 1000:.0f} ms", "", True)
    alone = statistics.median(quiet(server, keys[1]) for _ in range(3))
    beside = statistics.median(quiet(server, keys[1], keys[0]) for _ in range(3))
    row("p99 of a quiet caller, alone", f"{alone * 1000:.2f} ms", "", True)
    row("the same beside one that floods", f"{beside * 1000:.2f} ms ({beside / alone:.2f} x)", "2 x", beside < 2 * alone)
    server.end()
    if shutil.which("valgrind"):
        (WORK / ".runlore").mkdir()
        run("runs-list", "--project", WORK)  # makes its store, which is no request's cost
        rate = "\nrate_per_min = 0"
        token = instructions(["--token", "t" * 43], "t" * 43)
        key = instructions([], keys[1], tenants=tenants + rate)
        row("a request with the static token", f"{token / 1000:.1f}k", "", True)
        row("with an API key", f"+{(key - token) / 1000:.1f}k", "+14k", key - token < 14_000)
        signer = WORK / "signing.pem"
        run("token", "keygen", "--out", signer)
        jwt = run("token", "mint", "--key-file", signer, "--issuer", ISSUER, "--audience", AUDIENCE, "--organization", "o1", "--scope", "eval:read")
        auth = f"[auth]\nlocal_key_file = \"{signer}\"\nlocal_issuer = \"{ISSUER}\"\nlocal_audience = \"{AUDIENCE}\""
        warm = instructions([], jwt, tenants=tenants + rate, auth=auth)
        row("with a JWT that is known", f"+{(warm - token) / 1000:.1f}k", "+14k", warm - token < 14_000)
    width = max(len(what) for what, _, _ in rows)
    for what, figure, target in rows:
        print(f"{what:<{width}}  {figure:<24}  {target}")
    shutil.rmtree(WORK, ignore_errors=True)
    if OPTIONS.check and missed:
        sys.exit(f"missed: {', '.join(missed)}")


main()
