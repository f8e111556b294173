"""Runs a child process and says what it used: CPU seconds (user + system, from wait4) and peak memory. Standard library only."""

import os
import statistics
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Used:
    """What one child used."""

    def __init__(self, status, usage, out, wall_s):
        self.code = os.waitstatus_to_exitcode(status)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.peak_mb = usage.ru_maxrss / 1024
        self.out = out
        # Of a machine that does nothing else: shown beside CPU, since an import works on two cores.
        self.wall_s = wall_s


def run(command, talk=None, cwd=None, check=True):
    """Runs `command`; `talk(stdin, stdout)` holds a conversation with it, and what it returns is the output."""
    begun = time.monotonic()
    child = subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, env=environment()
    )
    complaints = []
    drain = threading.Thread(target=lambda: complaints.append(child.stderr.read()), daemon=True)
    drain.start()
    out = talk(child.stdin, child.stdout) if talk else None
    child.stdin.close()
    rest = child.stdout.read()
    drain.join()
    # Not child.wait(): wait4 gives the usage of this child alone.
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    used = Used(status, usage, rest.decode() if out is None else out, time.monotonic() - begun)
    if check and used.code:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {used.code}:\n{complaints[0].decode()[-2000:]}")
    return used


def environment():
    """This one's, without what would change what runlore finds or replaces."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("RUNLORE_", "GIT_"))}


def median(all_used):
    return statistics.median(used.cpu_s for used in all_used)


def wall(all_used):
    """The least: whatever else runs only adds to it."""
    return min(used.wall_s for used in all_used)


def table(heads, rows):
    """Columns of text, the first to the left and the others to the right."""
    rows = [list(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    for row in [heads, *rows]:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))).rstrip(), flush=True)


def verdict(met):
    return "ok" if met else "MISSED"
