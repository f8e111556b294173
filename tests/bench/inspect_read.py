#!/usr/bin/env python3
"""CPU seconds (user + system) and peak memory of Inspect AI's own full read of each log, each in a fresh process.

    python inspect_read.py FILE...      one JSON line per file: {"file", "cpu_s", "peak_rss_mb"}; needs inspect-ai==0.3.285

The import of inspect_ai (about 2 s) is not counted in `cpu_s`; its memory is part of `peak_rss_mb`.
"""

import json
import resource
import subprocess
import sys


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def read(file):
    from inspect_ai.log import read_eval_log

    before = cpu()
    log = read_eval_log(file)
    spent = cpu() - before
    assert log.samples is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"file": file, "cpu_s": round(spent, 3), "peak_rss_mb": round(peak, 1)}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        read(sys.argv[2])
    else:
        failed = [f for f in sys.argv[1:] if subprocess.run([sys.executable, __file__, "--one", f]).returncode]
        sys.exit(1 if failed or not sys.argv[1:] else 0)
