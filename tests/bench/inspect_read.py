#!/usr/bin/env python3
"""CPU seconds (user + system) and peak memory of Inspect AI's own full read of each log, each in a fresh process.

    python inspect_read.py [--stream] FILE...     one JSON line per file: {"file", "cpu_s", "peak_rss_mb"}; needs inspect-ai==0.3.285

With `--stream`, sample by sample by Inspect's own generator, which reads as much and holds less: for logs that do not fit in memory.

The import of inspect_ai (about 2 s) is not counted in `cpu_s`; its memory is part of `peak_rss_mb`.
"""

import json
import resource
import subprocess
import sys


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def read(file, stream):
    from inspect_ai.log import read_eval_log, read_eval_log_samples

    before = cpu()
    if stream:
        count = sum(1 for _ in read_eval_log_samples(file, all_samples_required=False))
    else:
        count = len(read_eval_log(file).samples or [])
    spent = cpu() - before
    assert count
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"file": file, "cpu_s": round(spent, 3), "peak_rss_mb": round(peak, 1)}), flush=True)


if __name__ == "__main__":
    stream = "--stream" in sys.argv[1:]
    files = [word for word in sys.argv[1:] if not word.startswith("--")]
    if "--one" in sys.argv[1:]:
        read(files[0], stream)
    else:
        how = ["--one", "--stream"] if stream else ["--one"]
        failed = [file for file in files if subprocess.run([sys.executable, __file__, *how, file]).returncode]
        sys.exit(1 if failed or not files else 0)
