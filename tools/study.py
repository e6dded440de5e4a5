#!/usr/bin/env python3
"""Runs the exercises of the documents with rondo-lenet, each with several seeds, and draws what came out.

usage: tools/study.py [options] RONDO_LENET STUDY [STUDY ...]

Studies: devices (1 and 2 ranks), batch (batches of k times as many samples, and learning rates), evaluation (by all ranks, or by
rank 0), slow (one of two workers takes four times as long), resnet18. docs/documents.md has what came out.

Each run is kept in OUT/study_NAME.json when it ends, and is not made again: a study that was stopped goes on where it was, on the same kind of machine. The
runs in docs/documents.md are in bench/results (--out bench/results --page). Prints
a table in Markdown, with --page for docs/documents.md, too; draws PICTURES/study_NAME.svg. Nothing else should run on the machine meanwhile. Needs matplotlib (Debian:
python3-matplotlib).
"""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import tempfile
from typing import Callable

try:
    import matplotlib
except ImportError as missing:
    raise SystemExit(f"study: {missing}: start it with /usr/bin/python3, for which tools/setup.sh installs it") from missing

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)

from bench_report import fill, table  # noqa: E402


@dataclasses.dataclass
class Line:
    """One row of a table, or one curve: runs that differ only in their seed."""
    label: str
    arguments: list
    published: str = ""


@dataclasses.dataclass
class Study:
    lines: list
    seeds: int
    draw: Callable | None


def ranks(count, **options):
    arguments = ["--processes", str(count)]
    for name, value in options.items():
        arguments += ["--" + name.replace("_", "-"), str(value)]
    return arguments


def of_seeds(values, digits=3):
    middle = statistics.mean(values)
    if len(values) == 1:
        return f"{middle:.{digits}f}"
    return f"{middle:.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def final(run, key):
    return run["epochs"][-1][key]


def mean_of(run, key):
    return statistics.mean(epoch[key] for epoch in run["epochs"])


def mean_over(runs, key):
    """By epoch, of the runs with different seeds."""
    return [statistics.mean(values) for values in zip(*([epoch[key] for epoch in run["epochs"]] for run in runs))]


def draw_epochs(lines, runs_of):
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    for line in lines:
        runs = runs_of[line.label]
        accuracy, seconds = mean_over(runs, "test_accuracy"), mean_over(runs, "seconds")
        epochs = range(1, len(accuracy) + 1)
        elapsed = [sum(seconds[:epoch]) for epoch in epochs]
        for axis, across in zip(axes, (epochs, elapsed)):
            curve, = axis.plot(across, accuracy, marker="o", markersize=3, label=line.label)
            low, high = ([choose(values) for values in zip(*([epoch["test_accuracy"] for epoch in run["epochs"]] for run in runs))] for choose in (min, max))
            axis.fill_between(across, low, high, color=curve.get_color(), alpha=0.15)
    axes[0].set_xlabel("epoch")
    axes[1].set_xlabel("seconds of training")
    axes[0].set_ylabel("test accuracy: mean, least and greatest of the seeds")
    for axis in axes:
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    return figure


def draw_batches(lines, runs_of):
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5))
    for size in sorted({run["config"]["batch_size"] for runs in runs_of.values() for run in runs}):
        of_size = sorted((runs[0]["config"]["lr"], runs) for runs in runs_of.values() if runs[0]["config"]["batch_size"] == size)
        for axis, key in zip(axes, ("test_accuracy", "train_loss")):
            values = [[final(run, key) for run in runs] for _, runs in of_size]
            middle = [statistics.mean(each) for each in values]
            spread = [[m - min(each) for m, each in zip(middle, values)], [max(each) - m for m, each in zip(middle, values)]]
            axis.errorbar([rate for rate, _ in of_size], middle, yerr=spread, marker="o", markersize=4, capsize=3, label=f"batch {size}")
            axis.set_ylabel(key.replace("_", " ") + " after the last epoch")
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.set_xlabel("learning rate")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    return figure


SLOW = {"slow": "1:4"}
STUDIES = {
    "devices": Study([Line("1 rank", ranks(1, batch_size=256, lr=0.2), "0.85, 11.0 s; 0.80, 2.7 s"),
                      Line("2 ranks", ranks(2, batch_size=256, lr=0.2), "0.83, 13.7 s; 0.84, 2.8 s")], 3, draw_epochs),
    "batch": Study([Line(f"batch {256 * k}, lr {rate}", ranks(2, batch_size=256 * k, lr=rate)) for k in (1, 2, 4) for rate in (0.2, 0.4, 0.8)],
                   2, draw_batches),
    "evaluation": Study([Line("2 ranks, all evaluate", ranks(2, evaluate="all")), Line("2 ranks, rank 0 evaluates", ranks(2, evaluate="rank-0"))], 3, None),
    "slow": Study([Line("server", ranks(3, strategy="server", **SLOW)), Line("server-async", ranks(3, strategy="server-async", **SLOW)),
                   Line("server-async, staleness at most 1", ranks(3, strategy="server-async", max_staleness=1, **SLOW)),
                   Line("all-reduce, shares auto", ranks(2, shares="auto", **SLOW))], 2, draw_epochs),
    "resnet18": Study([Line("1 rank, batch 256, lr 0.1", ranks(1, model="resnet18", batch_size=256, lr=0.1), "0.92, 13.7 s"),
                       Line("2 ranks, batch 512, lr 0.2", ranks(2, model="resnet18", batch_size=512, lr=0.2), "0.89, 8.4 s")], 1, draw_epochs),
}


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


class Kept:
    """The runs of a study, by their arguments, in a file."""

    def __init__(self, file):
        self.file = file
        here = {"processor": processor(), "cores": os.cpu_count()}
        self.all = json.loads(file.read_text()) if file.exists() else dict(here, runs={})
        there = {name: self.all[name] for name in here}
        if there != here:
            raise SystemExit(f"study: {file} has runs of another machine ({there}, and this is {here}): take another --out")

    def get(self, arguments):
        return self.all["runs"].get(shlex.join(arguments))

    def put(self, arguments, history):
        self.all["runs"][shlex.join(arguments)] = dict(history, date=datetime.date.today().isoformat())
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self.all, indent=1) + "\n")
        part.rename(self.file)


def train(program, arguments):
    with tempfile.TemporaryDirectory() as folder:
        history = pathlib.Path(folder) / "history.json"
        done = subprocess.run([program, *arguments, "--history", history], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"study: {shlex.join(arguments)}\n{done.stdout}{done.stderr}")
        return json.loads(history.read_text())


def table_of(study, runs_of):
    body = []
    for line in study.lines:
        runs = runs_of[line.label]
        body.append([line.label, of_seeds([final(run, "test_accuracy") for run in runs]), of_seeds([final(run, "train_loss") for run in runs]),
                     of_seeds([mean_of(run, "seconds") for run in runs], 2), of_seeds([mean_of(run, "evaluation_seconds") for run in runs], 2)])
    head = ["", "test accuracy", "train loss", "seconds an epoch", "seconds to evaluate"]
    if any(line.published for line in study.lines):
        head.append("published")
        body = [[*row, line.published] for row, line in zip(body, study.lines)]
    return table(head, body)


def run(name, options):
    study = STUDIES[name]
    kept = Kept(options.out / f"study_{name}.json")
    seeds = options.seeds or study.seeds
    runs_of = {line.label: [] for line in study.lines}
    for seed in range(1, seeds + 1):  # one after the other, so that a study that was stopped has something of each line
        for line in study.lines:
            data = ["--data", options.data] if options.data else []
            arguments = [*line.arguments, "--seed", str(seed), *shlex.split(options.extra), *data]
            if kept.get(arguments) is not None:
                print(f"{name}: {line.label}, seed {seed}: kept, of {kept.get(arguments)['date']}", flush=True)
            else:
                kept.put(arguments, train(options.program, arguments))
                print(f"{name}: {line.label}, seed {seed}: test accuracy {final(kept.get(arguments), 'test_accuracy'):.4f}", flush=True)
            runs_of[line.label].append(kept.get(arguments))
    print(table_of(study, runs_of))
    if options.page:
        fill("docs/documents.md", {f"study_{name}": lambda: table_of(study, runs_of)})
    if study.draw:
        figure = study.draw(study.lines, runs_of)
        figure.tight_layout()
        figure.savefig(options.pictures / f"study_{name}.svg", metadata={"Date": None})
        plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("studies", nargs="+", choices=STUDIES)
    parser.add_argument("--seeds", type=int, choices=range(1, 101), metavar="1-100", help="this number of seeds, from 1 on")
    parser.add_argument("--extra", default="", help="options of rondo-lenet for all runs, such as '--device cuda'")
    parser.add_argument("--page", action="store_true", help="writes the table into docs/documents.md, too")
    parser.add_argument("--data", help="folder of the four IDX files")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/study"))
    parser.add_argument("--pictures", type=pathlib.Path, help="default: OUT, or docs/pictures with --page")
    options = parser.parse_args()
    options.pictures = options.pictures or (pathlib.Path("docs/pictures") if options.page else options.out)
    for folder in (options.out, options.pictures):
        folder.mkdir(parents=True, exist_ok=True)
    plt.rcParams["svg.hashsalt"] = "rondo"
    for name in options.studies:
        run(name, options)


if __name__ == "__main__":
    main()
