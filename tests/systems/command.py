#!/usr/bin/env python3
"""Runs rondo-systems with its options on a few small pictures: command.py RONDO_SYSTEMS RONDO_LENET"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "lenet"))
from trainer_runs import Trainer, expect, write_pictures  # noqa: E402


def measure(*arguments):
    result = subprocess.run([systems.program, "--data", folder, "--batch-size", "64", *arguments], capture_output=True, text=True, timeout=100)
    return result.returncode, result.stdout + result.stderr


def ends_after_a_kill(victim):
    process = subprocess.Popen([systems.program, "--data", folder, "--epochs", "100000", "--batch-size", "64", "--processes", "4",
                                "--strategy", "server"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    process.stdout.readline()  # of the first epoch
    ranks = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(ranks[victim]), signal.SIGKILL)
    output, _ = process.communicate(timeout=60)
    print(*(line for line in output.splitlines() if "rondo-systems:" in line), sep="\n")
    return process.returncode != 0 and output.count("rondo-systems: ") >= 3


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    write_pictures(folder, "train", 230, 1)
    write_pictures(folder, "t10k", 100, 2)
    systems = Trainer(sys.argv[1], folder)
    two = ("--processes", "2")
    code, plain = Trainer(sys.argv[2], folder).run(*two)
    code, same = systems.run(*two)
    expect(code == 0 and same["param_hash"] == plain["param_hash"], "without further options it trains as rondo-lenet does")
    lenet, state = Trainer(sys.argv[2], folder), folder / "crossing"
    for program, epochs in ((lenet, 1), (systems, 2), (lenet, 3)):
        code, crossed = program.run(*two, "--checkpoint", state, epochs=epochs)
        expect(code == 0 and len(crossed["epochs"]) == 1, f"epoch {epochs} goes on from the other program's checkpoint")
    code, straight = lenet.run(*two, epochs=3)
    expect(crossed["param_hash"] == straight["param_hash"], "that computes the bits of one run")
    code, split = systems.run(*two, "--split", "rows", "--algo", "none")
    expect(code == 0 and split["epochs"][1]["part_bytes"] > 0, "--split with --algo none, where one rank takes all samples")
    code, unequal = systems.run(*two, "--shares", "3,1")
    expect(code == 0 and unequal["epochs"][0]["shares"] == [0.75, 0.25], "--shares 3,1")
    expect(abs(unequal["epochs"][1]["train_loss"] - plain["epochs"][1]["train_loss"]) < 1e-4,
           "with unequal shares the loss is the same")
    code, measured = systems.run(*two, "--shares", "auto")
    expect(code == 0 and measured["epochs"][0]["shares"] == [] and len(measured["epochs"][1]["shares"]) == 2, "--shares auto")
    code, separate = systems.run(*two, "--local-steps", "3")
    expect(code == 0 and separate["epochs"][0]["sent_bytes"] * 2 == plain["epochs"][0]["sent_bytes"], "--local-steps 3")
    code, resynced = systems.run(*two, "--resync", "2")
    expect(code == 0 and resynced["param_hash"] == plain["param_hash"], "--resync 2 changes nothing where nothing drifts")
    code, alone = systems.run(*two, "--evaluate", "rank-0")
    expect(code == 0 and [epoch["test_accuracy"] for epoch in alone["epochs"]] == [epoch["test_accuracy"] for epoch in plain["epochs"]]
           and alone["epochs"][0]["evaluation_seconds"] > 0, "--evaluate rank-0 finds the same accuracy")
    for what, ranks in ((("--strategy", "server"), 3), (("--model", "resnet18", "--batch-norm", "all", "--train-samples", "32"), 2), (("--warmup", "1.5"), 2),
                        (("--strategy", "server", "--warmup", "2"), 3)):
        state = systems.goes_on_from_a_checkpoint(*what, ranks=ranks)
        other = "lenet" if "resnet18" in what else "resnet18"
        systems.refuses((*two, "--model", other, "--train-samples", "32", "--checkpoint", state), "its model is", epochs=3)
        state.unlink()
    code, warm = systems.run(*two, "--warmup", "1")
    expect(code == 0 and warm["param_hash"] != plain["param_hash"], "--warmup 1")
    code, served = systems.run("--processes", "3", "--strategy", "server")
    expect(code == 0 and served["param_hash"] == plain["param_hash"], "two workers with a server compute the bits of two ranks")
    expect(served["staleness"]["greatest"] == 0 and sum(served["staleness"]["updates"]) == 8, "each step is one update")
    expect(served["config"]["strategy"] == "server" and served["config"]["ranks"] == 2, "the history tells the strategy")
    code, sharded = systems.run("--processes", "4", "--strategy", "server", "--servers", "2", "--shares", "3,1")
    expect(code == 0 and abs(sharded["epochs"][1]["train_loss"] - plain["epochs"][1]["train_loss"]) < 1e-4, "two servers, unequal shares")
    code, free = systems.run("--processes", "4", "--strategy", "server-async", "--max-staleness", "1", "--slow", "1:4")
    expect(code == 0 and sum(free["staleness"]["updates"]) == 24 and free["staleness"]["greatest"] <= 1, "--strategy server-async --max-staleness 1 --slow 1:4")
    without_files = subprocess.run([systems.program, *two, "--model", "spirals", "--batch-size", "64", "--history", folder / "history.json"], timeout=100)
    expect(without_files.returncode == 0 and json.loads((folder / "history.json").read_text())["epochs"][9]["test_accuracy"] > 0.9,
           "--model spirals needs no files")
    code, slow = systems.run(*two, "--slow", "0:2")
    expect(code == 0 and slow["param_hash"] == plain["param_hash"], "--slow changes no result")
    for split, ranks in (("columns", 2), ("rows", 4), ("layers", 4)):
        code, parts = systems.run("--processes", str(ranks), "--split", split)
        expect(code == 0 and abs(parts["epochs"][1]["train_loss"] - plain["epochs"][1]["train_loss"]) < 1e-4
               and parts["epochs"][1]["part_bytes"] > 0 and parts["config"]["ranks"] == ranks, f"{ranks} ranks, --split {split}")
    for name, first, second in (("local-steps", "1", "2"), ("split", "layers", "columns"),
                                ("strategy", "all-reduce", "server"), ("wire", "exact", "bf16")):
        expect(systems.both_say(f"--{name}", ("--data", folder, f"--{name}", first), ("--data", folder, f"--{name}", second)),
               f"ranks with another --{name} are told so")
    for split in (("--split", "layers"), ("--split", "columns")):
        expect(systems.says_that_files_differ(*split), f"ranks with other files are told so {split}")
    for strategy in (("--processes", "2"), ("--processes", "3", "--strategy", "server")):
        measured = subprocess.run([systems.program, *strategy, "--measure-exchange", "5", "--json", folder / "exchange.json"],
                                  capture_output=True, text=True, timeout=100)
        expect(measured.returncode == 0 and "exchange of 516272 bytes" in measured.stdout
               and json.loads((folder / "exchange.json").read_text())["exchange_us"]["median"] > 0, f"--measure-exchange {strategy}")
    for victim, role in ((1, "worker"), (3, "server")):
        expect(ends_after_a_kill(victim), f"after a {role} is killed, all ranks end with an error")
    for extra, text in ((("--strategy", "server", "--servers", "2"), "leaves no rank that trains"),
                        (("--max-staleness", "1"), "is for --strategy server-async"),
                        (("--model", "spirals"), "--data: is of no use"), (("--slow", "1"), "is not RANK:FACTOR"),
                        (("--strategy", "server", "--wire", "bf16"), "without --algo, --wire"),
                        (("--strategy", "server", "--bucket-kib", "4"), "without --algo, --wire"),
                        (("--slow", "7:4"), "--slow 7:4: ranks that train are numbered from 0 to 1"),
                        (("--strategy", "server-async", "--shares", "1,2"), "has no shares"),
                        (("--split", "rows", "--parts", "3"), "--parts 3: 2 ranks are no multiple of that; start 3"),
                        (("--split", "layers", "--parts", "3"), "must be 2 with --split layers"), (("--parts", "2"), "requires --split"),
                        (("--split", "rows", "--strategy", "server"), "is for LeNet on the CPU, and not for --strategy")):
        systems.refuses((*two, *extra), text)
    for extra in (("--warmup", "nan"), ("--slow", "1:1e300"), ("--servers", "7"), ("--micro-batches", "9", "--split", "rows"),
                  ("--local-steps", "2", "--algo", "naive"), ("--local-steps", "-1"), ("--resync", "-1"), ("--train-samples", "-5"),
                  ("--test-samples", "-5"), ("--max-staleness", "-1", "--strategy", "server-async"),
                  ("--batch-norm", "all", "--model", "resnet18", "--local-steps", "2")):
        systems.refuses((*two, *extra), f"{extra[0]}: ")
    for shares, text in (("1,2,3", "there are 3 shares, and 2 ranks train"), ("0,0", "must have a sum above 0"), ("1e308,1e308", "a finite one"),
                         ("1,x", "is not equal, auto or numbers"), ("1,-2", "is not equal, auto or numbers"),
                         ("3,1,", "is not equal, auto or numbers")):
        systems.refuses((*two, "--shares", shares), text)
    systems.refuses((*two, "--local-steps", "2", "--resync", "2"), "sums no gradients")
    systems.refuses((*two, "--shares", "1,2", "--device", "cuda"), "are for training with --device cpu")
    for extra, text in ((("--measure-overlap", "2", "--shares", "1,2"), "are for training"), (("--measure-exchange", "2", "--shares", "5,1"), "trains nothing"),
                        (("--measure-exchange", "2", "--algo", "none"), "trains nothing"), (("--measure-exchange", "2", "--train-samples", "7"), "trains nothing"),
                        (("--measure-exchange", "2", "--lr", "5"), "excludes"), (("--measure-exchange", "2", "--epochs", "3"), "excludes"),
                        (("--measure-overlap", "2", "--evaluate", "rank-0"), "excludes"), (("--measure-overlap", "2", "--epochs", "3"), "excludes")):
        code, output = measure(*two, *extra)
        expect(code != 0 and text in output, f"{' '.join(extra)} is refused")
