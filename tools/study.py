#!/usr/bin/env python3
"""Runs the exercises of the documents with rondo-systems, each with several seeds, and draws what came out.

usage: tools/study.py [options] RONDO_SYSTEMS STUDY [STUDY ...]

Studies: devices (1 and 2 ranks), batch (batches of k times as many samples, and learning rates), evaluation (by all ranks, or by
rank 0), slow (one of two workers takes four times as long), resnet18, local_steps (averages of parameters now and then), shares (three
ranks on two cores), parallel (parts of a model on several ranks). docs/documents.md has what came out.

Each run is kept in OUT/study_NAME.json when it ends, and is not made again: a study that was stopped goes on where it was, on the same kind of
machine, or on any where the table shows no seconds of the missing runs. Nothing else should run on the machine during runs of which it does.
The runs in docs/documents.md are in bench/results (--out bench/results --page). Prints a table in Markdown, with --page for
docs/documents.md, too; draws PICTURES/study_NAME.svg. Needs matplotlib (Debian: python3-matplotlib).
"""
import argparse
import dataclasses
import datetime
import functools
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import tempfile
import textwrap
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
    placed: str = ""  # shell words that start the program in each of `placed_ranks` ranks; empty: it starts its ranks itself
    placed_ranks: int = 3


@dataclasses.dataclass
class Column:
    title: str
    value: Callable  # of a run
    digits: int = 3
    seeds: int | None = None  # of the first ones alone; None: of all
    timed: bool = False  # depends on the machine, and on what else runs there


@dataclasses.dataclass
class Study:
    lines: list
    seeds: int
    draw: Callable | None
    columns: list
    epochs: int = 10

    def times(self, seed):
        """Whether the table shows seconds of this seed's runs."""
        return any(column.timed and (column.seeds is None or seed <= column.seeds) for column in self.columns)


def ranks(count, **options):
    arguments = ["--processes", str(count)]
    for name, value in options.items():
        arguments += ["--" + name.replace("_", "-"), str(value)]
    return arguments


def of_seeds(values, digits=3):
    middle = statistics.mean(values)
    least, greatest = (f"{choose(values):.{digits}f}" for choose in (min, max))
    return least if least == greatest else f"{middle:.{digits}f} ({least} to {greatest})"


def final(run, key):
    return run["epochs"][-1][key]


def mean_of(run, key, first=0):
    """Over the epochs from number `first` on, or over the last one where there are fewer."""
    epochs = run["epochs"]
    return statistics.mean(epoch[key] for epoch in epochs[min(first, len(epochs) - 1):])


def staleness_of(run, key):
    return run["staleness"][key] if "staleness" in run else 0  # only servers count it


def mb_of(key):
    return lambda run: mean_of(run, key) / 1e6


def mean_over(runs, key):
    """By epoch, of the runs with different seeds."""
    return [statistics.mean(values) for values in zip(*([epoch[key] for epoch in run["epochs"]] for run in runs))]


def draw_epochs(lines, runs_of, timed=None):
    """`timed`: of the first so many seeds the seconds are taken; None: of all."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    for line in lines:
        runs = runs_of[line.label]
        accuracy, seconds = mean_over(runs, "test_accuracy"), mean_over(runs[:timed], "seconds")
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


def draw_bytes(lines, runs_of):
    """What is learnt against what is sent."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5))
    for axis, key in zip(axes, ("test_accuracy", "train_loss")):
        for line in lines:
            values = [final(run, key) for run in runs_of[line.label]]
            middle = statistics.mean(values)
            axis.errorbar([SENT.value(runs_of[line.label][0])], [middle], yerr=[[middle - min(values)], [max(values) - middle]], marker="o",
                          markersize=5, capsize=3, linestyle="none", label=line.label)
        axis.set_xscale("log")
        axis.set_xlabel("sent by a rank in an epoch, MB")
        axis.set_ylabel(key.replace("_", " ") + " after the last epoch")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    return figure


def draw_bars(axis, lines, runs_of, column):
    values = [[column.value(run) for run in runs_of[line.label]] for line in lines]
    middle = [statistics.mean(each) for each in values]
    spread = [[m - min(each) for m, each in zip(middle, values)], [max(each) - m for m, each in zip(middle, values)]]
    axis.barh(range(len(lines)), middle, xerr=spread, capsize=3)
    axis.set_yticks(range(len(lines)), [textwrap.fill(line.label, 28) for line in lines], fontsize=8)
    axis.invert_yaxis()  # in the order of the table
    axis.set_xlabel(column.title)
    axis.grid(alpha=0.3, axis="x")


def draw_shares(lines, runs_of):
    figure, axis = plt.subplots(figsize=(7, 4.5))
    draw_bars(axis, lines, runs_of, LATER_SECONDS)
    ideal = statistics.mean(LATER_SECONDS.value(run) for run in runs_of[lines[0].label]) / 2
    axis.axvline(ideal, linestyle="--", color="gray", label="half of one rank's time")
    axis.legend(fontsize=8)
    return figure


def draw_parts(lines, runs_of):
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5))
    draw_bars(axes[0], lines, runs_of, Column("sent by rank 0 in an epoch, MB", lambda run: SENT.value(run) + PARTS_SENT.value(run)))
    draw_bars(axes[1], lines, runs_of, SECONDS)
    return figure


ACCURACY = Column("test accuracy", lambda run: final(run, "test_accuracy"))
LOSS = Column("train loss", lambda run: final(run, "train_loss"))
SECONDS = Column("seconds an epoch", lambda run: mean_of(run, "seconds"), 2, timed=True)
LATER_SECONDS = Column("seconds an epoch, from the second on", lambda run: mean_of(run, "seconds", first=1), 2, timed=True)
EVALUATION = Column("seconds to evaluate", lambda run: mean_of(run, "evaluation_seconds"), 2, timed=True)
SENT = Column("gradients or parameters sent an epoch, MB", mb_of("sent_bytes"), 1)
PARTS_SENT = Column("sent between parts of a model an epoch, MB", mb_of("part_bytes"), 1)
USUAL = [ACCURACY, LOSS, SECONDS, EVALUATION]
STALENESS = [Column("staleness, mean", lambda run: staleness_of(run, "mean"), 2), Column("staleness, greatest", lambda run: staleness_of(run, "greatest"), 0)]


def seconds_of(seeds, columns):
    """These columns, with the seconds of the first seeds alone, so that runs of further seeds may be made on another machine, and beside other work."""
    those = ", seed 1" if seeds == 1 else f", seeds 1 to {seeds}"
    return [dataclasses.replace(column, title=column.title + those, seeds=seeds) if column.timed else column for column in columns]


SLOW = {"slow": "1:4"}
# Rank 0 has a core for itself, ranks 1 and 2 share the other one; rondo-launch sets RONDO_RANK.
CORES = sorted(os.sched_getaffinity(0))
ONE_CORE, TWO_CORES = f"exec taskset -c {CORES[0]}", f"exec taskset -c $(( ${{RONDO_RANK:?}} > 0 ? {CORES[-1]} : {CORES[0]} ))"
STUDIES = {
    "devices": Study([Line("1 rank", ranks(1, batch_size=256, lr=0.2), "0.85, 11.0 s; 0.80, 2.7 s"),
                      Line("2 ranks", ranks(2, batch_size=256, lr=0.2), "0.83, 13.7 s; 0.84, 2.8 s")], 3, draw_epochs, USUAL),
    "batch": Study([Line(f"batch {256 * k}, lr {rate}", ranks(2, batch_size=256 * k, lr=rate)) for k in (1, 2, 4) for rate in (0.2, 0.4, 0.8)],
                   3, draw_batches, seconds_of(2, USUAL)),
    "evaluation": Study([Line("2 ranks, all evaluate", ranks(2, evaluate="all")), Line("2 ranks, rank 0 evaluates", ranks(2, evaluate="rank-0"))], 3, None, USUAL),
    "slow": Study([Line("server", ranks(3, strategy="server", **SLOW)), Line("server-async", ranks(3, strategy="server-async", **SLOW)),
                   Line("server-async, staleness at most 1", ranks(3, strategy="server-async", max_staleness=1, **SLOW)),
                   Line("all-reduce, shares auto", ranks(2, shares="auto", **SLOW))], 2, draw_epochs, USUAL + STALENESS),
    "resnet18": Study([Line("1 rank, batch 256, lr 0.1", ranks(1, model="resnet18", batch_size=256, lr=0.1), "0.92, 13.7 s"),
                       Line("2 ranks, batch 512, lr 0.2", ranks(2, model="resnet18", batch_size=512, lr=0.2), "0.89, 8.4 s")], 3, functools.partial(draw_epochs, timed=1), seconds_of(1, USUAL)),
    "local_steps": Study([Line("gradients, every step", ranks(2))] + [Line(f"averages every {steps} steps", ranks(2, local_steps=steps)) for steps in (4, 16, 64)]
                         + [Line("averages every epoch", ranks(2, local_steps=235))], 3, draw_bytes, [ACCURACY, LOSS, SENT]),
    "shares": Study([Line("1 rank alone, one core", [], placed=ONE_CORE, placed_ranks=1), Line("equal shares", [], placed=TWO_CORES),
                     Line("shares 2, 1, 1", ["--shares", "2,1,1"], placed=TWO_CORES), Line("shares auto", ["--shares", "auto"], placed=TWO_CORES)],
                    2, draw_shares, [Column("seconds of epoch 1", lambda run: run["epochs"][0]["seconds"], 2, timed=True), LATER_SECONDS, LOSS], epochs=4),
    "parallel": Study([Line("2 ranks, data-parallel", ranks(2)), Line("2 ranks, rows", ranks(2, split="rows")), Line("2 ranks, columns", ranks(2, split="columns")),
                       Line("2 ranks, layers", ranks(2, split="layers")), Line("4 ranks, data-parallel", ranks(4)), Line("4 ranks, 2 × 2, rows", ranks(4, split="rows"))],
                      2, draw_parts, [LOSS, SECONDS, SENT, PARTS_SENT], epochs=1),
}


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


class Kept:
    """The runs of a study, by their arguments, in a file, which names the machine that the seconds in the study's table are of."""

    def __init__(self, file):
        self.file = file
        self.here = {"processor": processor(), "cores": os.cpu_count()}
        self.all = json.loads(file.read_text()) if file.exists() else dict(self.here, runs={})

    @property
    def machine(self):
        return {name: self.all[name] for name in self.here}

    def require_this_machine(self):
        if self.machine != self.here:
            raise SystemExit(f"study: {self.file} has runs of another machine ({self.machine}, and this is {self.here}): take another --out")

    def is_of_the_files_machine(self, arguments):
        return self.get(arguments).get("machine", self.machine) == self.machine

    def get(self, arguments):
        return self.all["runs"].get(shlex.join(arguments))

    def put(self, arguments, history):
        described = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=pathlib.Path(__file__).parent, capture_output=True, text=True)
        self.all["runs"][shlex.join(arguments)] = dict(history, date=datetime.date.today().isoformat(), sources=described.stdout.strip(), machine=self.here)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self.all, indent=1) + "\n")
        part.rename(self.file)


def start_of(program, line):
    """The words before the trainer's own arguments."""
    if not line.placed:
        return [program]
    return [program.resolve().parents[2] / "tools/rondo-launch", "-n", str(line.placed_ranks), "sh", "-c", f'{line.placed} "$0" "$@"', program]


def train(program, line, arguments):
    with tempfile.TemporaryDirectory() as folder:
        history = pathlib.Path(folder) / "history.json"
        done = subprocess.run([*start_of(program, line), *arguments, "--history", history], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"study: {shlex.join(arguments)}\n{done.stdout}{done.stderr}")
        return json.loads(history.read_text())


def table_of(study, runs_of, machine):
    body = []
    for line in study.lines:
        body.append([line.label, *(of_seeds([column.value(run) for run in runs_of[line.label][:column.seeds]], column.digits) for column in study.columns)])
    head = ["", *(column.title for column in study.columns)]
    if any(line.published for line in study.lines):
        head.append("published")
        body = [[*row, line.published] for row, line in zip(body, study.lines)]
    dates = sorted({run["date"] for runs in runs_of.values() for run in runs})
    seeds = len(runs_of[study.lines[0].label])
    timed = f"; seconds: {machine['processor']}, {machine['cores']} cores" if study.times(1) else ""
    return table(head, body) + f"\n\n{seeds} seed{'s' if seeds > 1 else ''}; {' and '.join(dates)}{timed}"


def run(name, options):
    study = STUDIES[name]
    kept = Kept(options.out / f"study_{name}.json")
    seeds = options.seeds or study.seeds
    runs_of = {line.label: [] for line in study.lines}
    for seed in range(1, seeds + 1):  # one after the other, so that a study that was stopped has something of each line
        for line in study.lines:
            data = ["--data", options.data] if options.data else []
            extra = shlex.split(options.extra)
            # The trainer's default of 10 epochs is not named: kept runs are found by their arguments, and those of earlier runs lack it.
            epochs = [] if study.epochs == 10 or "--epochs" in extra else ["--epochs", str(study.epochs)]
            arguments = [*line.arguments, "--seed", str(seed), *epochs, *extra, *data]
            key = [f"--{line.placed_ranks}-bound-ranks", *arguments] if line.placed else arguments
            if kept.get(key) is not None:
                if study.times(seed) and not kept.is_of_the_files_machine(key):
                    raise SystemExit(f"study: {line.label}, seed {seed} ran on another machine than the runs whose seconds the table shows: take it out of {kept.file}")
                print(f"{name}: {line.label}, seed {seed}: kept, of {kept.get(key)['date']}", flush=True)
            else:
                if study.times(seed):
                    kept.require_this_machine()
                kept.put(key, train(options.program, line, arguments))
                print(f"{name}: {line.label}, seed {seed}: test accuracy {final(kept.get(key), 'test_accuracy'):.4f}", flush=True)
            runs_of[line.label].append(kept.get(key))
    print(table_of(study, runs_of, kept.machine))
    if options.page:
        fill("docs/documents.md", {f"study_{name}": lambda: table_of(study, runs_of, kept.machine)})
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
    parser.add_argument("--extra", default="", help="options of rondo-systems for all runs, such as '--device cuda'")
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
