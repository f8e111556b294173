#!/usr/bin/env python3
"""Makes big Inspect logs for the benchmarks, with Inspect's mock model (inspect-ai==0.3.285). Nothing of it is committed.

    python make_logs.py DIR                       DIR/many_samples.eval: 4,000 short samples, about 8.5 MB (34 MB raw)
    python make_logs.py DIR --samples 500         fewer
    python make_logs.py DIR --json                also DIR/many_samples.json, the same log by Inspect's JSON recorder
    python make_logs.py DIR --huge 2              only DIR/huge.eval: 2 GiB of raw sample JSON in samples of about 125 KB, made by
                                                  copying the samples of a real 40-sample log with new ids and uuids
           --method deflate|store|zstd            how huge.eval's samples are compressed (default deflate, level 1)
           --turns N                              model calls in each of its samples (default 15; 1 = very many small samples)
"""

import argparse
import json
import os
import random
import re
import shutil
import tempfile
import time
import zipfile
from pathlib import Path

os.environ["INSPECT_DISPLAY"] = "none"

import inspect_ai._eval.loader as loader
import inspect_ai._eval.task.log as task_log
from inspect_ai import Task, eval as inspect_eval, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate, solver

WORDS = "refund order parcel lamp invoice ticket customer delivery warranty label shelf return credit card week day".split()


def sentence(rng, n):
    return " ".join(rng.choice(WORDS) for _ in range(n)).capitalize() + "."


@task
def many_samples(n: int):
    return Task(
        dataset=MemoryDataset([Sample(id=i, input=f"What is {i} + {i % 7}?", target=str(i + i % 7)) for i in range(1, n + 1)]),
        solver=generate(),
        scorer=match(),
    )


@solver
def conversation(turns: int, size: int):
    async def solve(state, generate):
        rng = random.Random(str(state.sample_id))
        for turn in range(turns):
            if turn:
                state.messages.append(ChatMessageUser(content=sentence(rng, size)))
            state = await generate(state)
        return state

    return solve


@task
def long_samples(n: int, turns: int, size: int = 60):
    return Task(
        dataset=MemoryDataset([Sample(id=f"long-{i:06}", input=f"What is {i} + {i % 7}?", target=str(i + i % 7)) for i in range(n)]),
        solver=conversation(turns, size),
        scorer=match(),
    )


def run(the_task, folder, words):
    rng = random.Random(7)
    task_log.git_context = lambda: None  # Inspect looks in the folder of the task's file
    loader.task_file = lambda task, relative=False: "make_logs.py"

    def output(messages, tools, tool_choice, config):
        question = re.match(r"What is (\d+) \+ (\d+)", messages[0].text)
        value = int(question[1]) + int(question[2]) + (rng.random() < 0.2)
        out = ModelOutput.from_content("mockllm/model", f"{sentence(rng, words)} The answer is {value}")
        sent, made = sum(len(m.text) for m in messages) // 4, len(out.completion) // 4
        # without usage the mock model counts tokens by itself, with tables it downloads
        out.usage = ModelUsage(input_tokens=sent, output_tokens=made, total_tokens=sent + made)
        return out

    model = get_model("mockllm/model", memoize=False)
    model.api.outputs = output
    [log] = inspect_eval(the_task, model=model, log_dir=str(folder), log_realtime=False, max_samples=10)
    assert log.status == "success", log.error and log.error.message
    return Path(log.location.removeprefix("file://"))


ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
ID = re.compile(r'(?<=")[2-9A-HJ-NP-Za-km-z]{22}(?=")')  # ids as Inspect makes them, as a whole JSON string


def tag(n):
    text = ""
    for _ in range(6):
        n, digit = divmod(n, len(ALPHABET))
        text += ALPHABET[digit]
    return text


class Copier:
    """JSON text whose ids can be replaced quickly; `old` is the sample's id as JSON."""

    def __init__(self, text, old):
        self.pieces, self.marks = [], []
        at = 0
        places = [(m.start(), m.end(), m[0][:16]) for m in ID.finditer(text)]
        places += [(m.start() + 5, m.end(), None) for m in re.finditer('"id":' + re.escape(old), text)]
        for start, end, keep in sorted(places):
            self.pieces.append(text[at:start])
            self.marks.append(keep)
            at = end
        self.rest = text[at:]

    def copy(self, n, new):
        suffix, out = tag(n), []
        for piece, keep in zip(self.pieces, self.marks):
            out.append(piece)
            out.append(new if keep is None else keep + suffix)
        return "".join(out) + self.rest


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def huge(folder, gib, method, turns):
    work = Path(tempfile.mkdtemp(dir=folder))
    source = zipfile.ZipFile(run(long_samples(40, turns), work, 250))
    summaries = {s["id"]: s for s in json.loads(source.read("summaries.json"))}
    header, start = json.loads(source.read("header.json")), json.loads(source.read("_journal/start.json"))
    reductions = json.loads(source.read("reductions.json"))
    templates = []
    for name in source.namelist():
        if name.startswith("samples/"):
            text = source.read(name).decode()
            sample = json.loads(text)
            old = compact(sample["id"])
            templates.append((Copier(text, old), Copier(compact(summaries[sample["id"]]), old), summaries[sample["id"]]))
    source.close()
    shutil.rmtree(work)

    target = folder / "huge.eval"
    kind = {"deflate": zipfile.ZIP_DEFLATED, "store": zipfile.ZIP_STORED, "zstd": 93}[method]
    level = {"deflate": 1, "store": None, "zstd": 3}[method]
    budget, raw, ids, right, all_summaries, batch, batches = int(gib * 2**30), 0, [], [], [], [], 0
    made = templates
    with zipfile.ZipFile(target, "w", allowZip64=True) as out:

        def put(name, text, **how):
            how = how or {"compress_type": zipfile.ZIP_DEFLATED, "compresslevel": 6}
            out.writestr(name, text, **how)

        # the start of the journal lists the samples, so their number must be known first
        size = sum(len(t[0].copy(0, '"long-000000"').encode()) for t in made) / len(made)
        count = max(1, round(budget / size))
        ids = [f"long-{i:06}" for i in range(count)]
        for spec in (start["eval"], header["eval"]):
            spec["dataset"].update(samples=count, sample_ids=ids)
            spec["task_args"]["n"] = count
        put("_journal/start.json", compact(start))
        for n, name in enumerate(ids):
            body, summary, parsed = made[n % len(made)]
            new = compact(name)
            text = body.copy(n, new).encode()
            raw += len(text)
            put(f"samples/{name}_epoch_1.json", text, compress_type=kind, compresslevel=level)
            batch.append(summary.copy(n, new))
            right.append(parsed["scores"]["match"]["value"] == "C")
            if len(batch) == 10 or n + 1 == count:
                batches += 1
                put(f"_journal/summaries/{batches}.json", "[" + ",".join(batch) + "]")
                all_summaries += batch
                batch = []
        put("summaries.json", "[" + ",".join(all_summaries) + "]")

        [reduction] = reductions
        one = reduction["samples"][0]
        reduction["samples"] = [{**one, "value": float(ok), "sample_id": name} for ok, name in zip(right, ids)]
        for item in reduction["samples"]:
            item.pop("answer", None), item.pop("explanation", None)
        put("reductions.json", compact(reductions))

        mean = sum(right) / count
        results = header["results"]
        results.update(total_samples=count, completed_samples=count)
        results["scores"][0]["scored_samples"] = count
        results["scores"][0]["metrics"]["accuracy"]["value"] = mean
        if "stderr" in results["scores"][0]["metrics"]:
            spread = (mean * (1 - mean) / max(1, count - 1)) ** 0.5
            results["scores"][0]["metrics"]["stderr"]["value"] = spread
        usage = header["stats"]["model_usage"]["mockllm/model"]
        for key in usage:
            if isinstance(usage[key], int):
                usage[key] = sum(made[n % len(made)][2]["model_usage"]["mockllm/model"].get(key) or 0 for n in range(count))
        put("header.json", compact(header))
    print(f"{target}: {count} samples, {raw / 2**20:.0f} MiB raw, {target.stat().st_size / 2**20:.0f} MiB on disk")


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("folder", type=Path)
    args.add_argument("--samples", type=int, default=4000)
    args.add_argument("--json", action="store_true")
    args.add_argument("--huge", type=float, metavar="GIB")
    args.add_argument("--method", choices=["deflate", "store", "zstd"], default="deflate")
    args.add_argument("--turns", type=int, default=15)
    args = args.parse_args()
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    began = time.time()
    if args.huge:
        huge(folder, args.huge, args.method, args.turns)
    else:
        target = folder / "many_samples.eval"
        work = Path(tempfile.mkdtemp(dir=folder))
        run(many_samples(args.samples), work, 20).rename(target)
        shutil.rmtree(work)
        if args.json:
            write_eval_log(read_eval_log(str(target)), str(target.with_suffix(".json")), format="json")
        with zipfile.ZipFile(target) as log:
            raw = sum(i.file_size for i in log.infolist())
        print(f"{target}: {args.samples} samples, {raw / 1e6:.1f} MB raw, {target.stat().st_size / 1e6:.2f} MB on disk")
    print(f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
