"""Starts a server and waits until it says that it listens. For the Python programs of the tests and benchmarks; standard library and `tail`.

Promises: what it says goes straight to a file, so that nobody reads along while it is measured; the wait ends with its line, with its end, or
when the time is up, and looks at nothing again and again (`tail -f` is told by the kernel).
Does not: end the server.
"""

import os
import subprocess
import threading

RUNLORE = b'"event":"listening"'


def start(words, says, log, seconds, **options):
    """The process, and whether it said `says` (bytes) on stdout or stderr within `seconds`; all that it says goes to the path `log`."""
    with open(log, "wb") as file:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, **options)
    tail = subprocess.Popen(["tail", "-c", "+1", "-f", str(log)], stdout=subprocess.PIPE)
    threading.Thread(target=ended, args=(process.pid, tail), daemon=True).start()
    late = threading.Timer(seconds, tail.kill)
    late.start()
    with tail.stdout as said:
        listens = any(says in line for line in said)
    late.cancel()
    tail.kill()
    tail.wait()
    return process, listens


def ended(pid, tail):
    """Ends `tail` with the process; whoever started that gets its exit code all the same."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        pass
    tail.kill()
