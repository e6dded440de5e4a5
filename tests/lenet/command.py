#!/usr/bin/env python3
"""Runs rondo-lenet with its options on a few small pictures: command.py RONDO_LENET [RONDO_SIM]"""
import gzip
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile

program = sys.argv[1]


def write_pictures(folder, name, count, seed):
    # One bright row, whose height is the class.
    pixels = random.Random(seed)
    labels = bytes(pixels.randrange(10) for _ in range(count))
    images = bytearray()
    for label in labels:
        for row in range(28):
            images += bytes(200 if row == 2 + 2 * label else pixels.randrange(30) for _ in range(28))
    for kind, header, data in (("images-idx3", struct.pack(">IIII", 2051, count, 28, 28), images),
                               ("labels-idx1", struct.pack(">II", 2049, count), labels)):
        with gzip.open(folder / f"{name}-{kind}-ubyte.gz", "wb") as file:
            file.write(header + bytes(data))


def run(folder, *arguments, epochs=2, batch_size=64, lr="0.05"):
    command = [program, "--data", folder, "--epochs", str(epochs), "--batch-size", str(batch_size), "--lr", lr,
               "--history", folder / "history.json", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if result.returncode != 0:
        print(result.stdout + result.stderr)
        return result.returncode, result.stdout + result.stderr
    return 0, json.loads((folder / "history.json").read_text())


def measure(folder, *arguments):
    result = subprocess.run([program, "--data", folder, "--batch-size", "64", *arguments], capture_output=True, text=True, timeout=100)
    return result.returncode, result.stdout + result.stderr


def ends_after_a_kill(folder, victim):
    process = subprocess.Popen([program, "--data", folder, "--epochs", "100000", "--batch-size", "64", "--processes", "4",
                                "--strategy", "server"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    process.stdout.readline()  # of the first epoch
    ranks = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(ranks[victim]), signal.SIGKILL)
    output, _ = process.communicate(timeout=60)
    print(*(line for line in output.splitlines() if "rondo-lenet:" in line), sep="\n")
    return process.returncode != 0 and output.count("rondo-lenet: ") >= 3


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print("ok:", what)


def both_say(folder, text, *of_ranks):
    """Whether two ranks with these arguments end with this error."""
    ranks = []
    for rank, arguments in enumerate(of_ranks):
        environment = {**os.environ, "RONDO_RANK": str(rank), "RONDO_SIZE": "2", "RONDO_STORE": f"unix://{folder}/socket"}
        ranks.append(subprocess.Popen([program, "--epochs", "1", *arguments], env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    outputs = [rank.communicate(timeout=100)[0] for rank in ranks]
    return all(rank.returncode != 0 and text in output for rank, output in zip(ranks, outputs))


def says_that_files_differ(folder, *what):
    """Two ranks, the second with other pictures."""
    others = folder / "others"
    others.mkdir(exist_ok=True)
    write_pictures(others, "train", 230, 3)
    write_pictures(others, "t10k", 100, 4)
    return both_say(folder, "have read different samples", ("--data", folder, *what), ("--data", others, *what))


def goes_on_from_a_checkpoint(folder, what):
    ranks = ("--processes", "3" if "server" in what else "2")
    state = folder / "checkpoint"
    code, straight = run(folder, *ranks, *what, "--checkpoint", folder / "straight")
    first, begun = run(folder, *ranks, *what, "--checkpoint", state, epochs=1)
    second, ended = run(folder, *ranks, *what, "--checkpoint", state)
    expect(code == first == second == 0 and ended["param_hash"] == straight["param_hash"] != begun["param_hash"]
           and ended["epochs"][0]["epoch"] == 2 and ended["epochs"][0]["test_accuracy"] == straight["epochs"][1]["test_accuracy"]
           and (folder / "straight").read_bytes() == state.read_bytes(),
           f"training goes on from a checkpoint {what}")
    for extra, text in ((("--seed", "2"), "its seed is 1, and this training's 2"),
                        (("--model", "lenet" if "resnet18" in what else "resnet18", "--train-samples", "32"), "its model is")):
        code, output = run(folder, *ranks, *(what if "--seed" in extra else ()), *extra, "--checkpoint", state)
        expect(code != 0 and text in output, f"a checkpoint of another {extra[0]} is refused")
    # What is done is not done again, and leaves the history as it was.
    code, output = run(folder, *ranks, *what, "--checkpoint", state)
    expect(code != 0 and "it has 2 epochs already, and --epochs asks for 2" in output and not list(folder.glob("*.part")),
           "a training that is done is not done again")
    code, output = run(folder, *ranks, *what, "--checkpoint", state, epochs=3, batch_size=16)
    expect(code != 0 and "its batch_size is 64, and this training's 16" in output, "a checkpoint of another batch is refused")
    whole = state.read_bytes()
    for damaged in (whole[:-100], whole[:4000] + bytes([whole[4000] ^ 1]) + whole[4001:], b""):
        state.write_bytes(damaged)
        code, output = run(folder, *ranks, *what, "--checkpoint", state, epochs=3)
        expect(code != 0 and "training cannot go on from this file" in output, "a damaged checkpoint is refused")
    for file in (state, folder / "straight"):
        file.unlink()


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    write_pictures(folder, "train", 230, 1)
    write_pictures(folder, "t10k", 100, 2)
    two = ("--processes", "2")
    code, plain = run(folder, *two)
    expect(code == 0, "two processes train")
    code, unequal = run(folder, *two, "--shares", "3,1")
    expect(code == 0 and unequal["epochs"][0]["shares"] == [0.75, 0.25], "--shares 3,1")
    expect(abs(unequal["epochs"][1]["train_loss"] - plain["epochs"][1]["train_loss"]) < 1e-4,
           "with unequal shares the loss is the same")
    code, measured = run(folder, *two, "--shares", "auto")
    expect(code == 0 and measured["epochs"][0]["shares"] == [] and len(measured["epochs"][1]["shares"]) == 2, "--shares auto")
    code, separate = run(folder, *two, "--local-steps", "3")
    expect(code == 0 and separate["epochs"][0]["sent_bytes"] * 2 == plain["epochs"][0]["sent_bytes"], "--local-steps 3")
    code, resynced = run(folder, *two, "--resync", "2")
    expect(code == 0 and resynced["param_hash"] == plain["param_hash"], "--resync 2 changes nothing where nothing drifts")
    code, alone = run(folder, *two, "--evaluate", "rank-0")
    expect(code == 0 and [epoch["test_accuracy"] for epoch in alone["epochs"]] == [epoch["test_accuracy"] for epoch in plain["epochs"]]
           and alone["epochs"][0]["evaluation_seconds"] > 0, "--evaluate rank-0 finds the same accuracy")
    for what in ((), ("--strategy", "server"), ("--model", "resnet18", "--batch-norm", "all", "--train-samples", "32"), ("--warmup", "1.5"),
                 ("--strategy", "server", "--warmup", "2")):
        goes_on_from_a_checkpoint(folder, what)
    code, warm = run(folder, *two, "--warmup", "1")
    expect(code == 0 and warm["param_hash"] != plain["param_hash"], "--warmup 1")
    code, served = run(folder, "--processes", "3", "--strategy", "server")
    expect(code == 0 and served["param_hash"] == plain["param_hash"], "two workers with a server compute the bits of two ranks")
    expect(served["staleness"]["greatest"] == 0 and sum(served["staleness"]["updates"]) == 8, "each step is one update")
    expect(served["config"]["strategy"] == "server" and served["config"]["ranks"] == 2, "the history tells the strategy")
    code, sharded = run(folder, "--processes", "4", "--strategy", "server", "--servers", "2", "--shares", "3,1")
    expect(code == 0 and abs(sharded["epochs"][1]["train_loss"] - plain["epochs"][1]["train_loss"]) < 1e-4, "two servers, unequal shares")
    code, free = run(folder, "--processes", "4", "--strategy", "server-async", "--max-staleness", "1", "--slow", "1:4")
    expect(code == 0 and sum(free["staleness"]["updates"]) == 24 and free["staleness"]["greatest"] <= 1, "--strategy server-async --max-staleness 1 --slow 1:4")
    without_files = subprocess.run([program, *two, "--model", "spirals", "--batch-size", "64", "--history", folder / "history.json"], timeout=100)
    expect(without_files.returncode == 0 and json.loads((folder / "history.json").read_text())["epochs"][9]["test_accuracy"] > 0.9,
           "--model spirals needs no files")
    code, slow = run(folder, *two, "--slow", "0:2")
    expect(code == 0 and slow["param_hash"] == plain["param_hash"], "--slow changes no result")
    if len(sys.argv) > 2:
        code, _ = run(folder, *two, "--overlap", "--bucket-kib", "1", "--trace", folder / "trace")
        simulated = subprocess.run([sys.argv[2], "--trace", folder / "trace", "--ranks", "1000", "--strategies", "ring"],
                                   capture_output=True, text=True, timeout=100)
        expect(code == simulated.returncode == 0 and "# shortest step of 1000 ranks: ring" in simulated.stdout, "rondo-sim reads the trace")
    for split, ranks in (("columns", 2), ("rows", 4), ("layers", 4)):
        code, parts = run(folder, "--processes", str(ranks), "--split", split)
        expect(code == 0 and abs(parts["epochs"][1]["train_loss"] - plain["epochs"][1]["train_loss"]) < 1e-4
               and parts["epochs"][1]["part_bytes"] > 0 and parts["config"]["ranks"] == ranks, f"{ranks} ranks, --split {split}")
    for name, first, second in (("seed", "1", "2"), ("lr", "0.05", "0.1"), ("local-steps", "1", "2"), ("split", "layers", "columns"),
                                ("strategy", "all-reduce", "server"), ("wire", "exact", "bf16")):
        expect(both_say(folder, f"--{name}", ("--data", folder, f"--{name}", first), ("--data", folder, f"--{name}", second)),
               f"ranks with another --{name} are told so")
    for split in ((), ("--split", "layers"), ("--split", "columns")):
        expect(says_that_files_differ(folder, *split), f"ranks with other files are told so {split}")
    for strategy in (("--processes", "2"), ("--processes", "3", "--strategy", "server")):
        measured = subprocess.run([program, *strategy, "--measure-exchange", "5", "--json", folder / "exchange.json"],
                                  capture_output=True, text=True, timeout=100)
        expect(measured.returncode == 0 and "exchange of 516272 bytes" in measured.stdout
               and json.loads((folder / "exchange.json").read_text())["exchange_us"]["median"] > 0, f"--measure-exchange {strategy}")
    for victim, role in ((1, "worker"), (3, "server")):
        expect(ends_after_a_kill(folder, victim), f"after a {role} is killed, all ranks end with an error")
    for extra, text in ((("--strategy", "server", "--servers", "2"), "leaves no rank that trains"),
                        (("--max-staleness", "1"), "is for --strategy server-async"),
                        (("--model", "spirals"), "--data: is of no use"), (("--slow", "1"), "is not RANK:FACTOR"),
                        (("--strategy", "server", "--wire", "bf16"), "without --algo, --wire"),
                        (("--strategy", "server", "--bucket-kib", "4"), "without --algo, --wire"),
                        (("--slow", "7:4"), "--slow 7:4: ranks that train are numbered from 0 to 1"),
                        (("--checkpoint", folder / "history.json"), "--checkpoint: is the file of --history, too"),
                        (("--strategy", "server-async", "--shares", "1,2"), "has no shares"),
                        (("--split", "rows", "--parts", "3"), "--parts 3: 2 ranks are no multiple of that; start 3"),
                        (("--split", "layers", "--parts", "3"), "must be 2 with --split layers"), (("--parts", "2"), "requires --split"),
                        (("--split", "rows", "--strategy", "server"), "is for LeNet on the CPU, and not for --strategy")):
        code, output = run(folder, *two, *extra)
        expect(code != 0 and text in output, f"{' '.join(map(str, extra))} is refused")
    for lr in ("nan", "-1"):
        code, output = run(folder, *two, lr=lr)
        expect(code != 0 and "--lr: " in output and "At Most" not in output, f"--lr {lr} is refused")
    for extra in (("--warmup", "nan"), ("--slow", "1:1e300"), ("--servers", "7"), ("--micro-batches", "9", "--split", "rows"),
                  ("--local-steps", "2", "--algo", "naive"), ("--local-steps", "-1"), ("--resync", "-1"), ("--seed", "-1"), ("--seed", "99999999999999999999"), ("--train-samples", "-5"),
                  ("--test-samples", "-5"), ("--max-staleness", "-1", "--strategy", "server-async"),
                  ("--batch-norm", "all", "--model", "resnet18", "--local-steps", "2"),
                  ("--checkpoint", folder / "x", "--trace", folder / ".." / folder.name / "x"), ("--checkpoint", folder / "x", "--trace", folder / "x.part")):
        code, output = run(folder, *two, *extra)
        expect(code != 0 and (f"{extra[0]}: " in output or "is the file of" in output), f"{' '.join(map(str, extra))} is refused")
    for shares, text in (("1,2,3", "--shares has 3 numbers, but 2 ranks train"), ("0,0", "must have a sum above 0"), ("1e308,1e308", "a finite one"),
                         ("1,x", "is not equal, auto or numbers"), ("1,-2", "is not equal, auto or numbers"),
                         ("3,1,", "is not equal, auto or numbers")):
        code, output = run(folder, *two, "--shares", shares)
        expect(code != 0 and text in output, f"--shares {shares} is refused")
    code, output = run(folder, *two, "--local-steps", "2", "--resync", "2")
    expect(code != 0 and "sums no gradients" in output, "--local-steps with --resync is refused")
    for extra, text in ((("--measure-overlap", "2", "--shares", "1,2"), "are for training"), (("--measure-exchange", "2", "--shares", "5,1"), "trains nothing"),
                        (("--measure-exchange", "2", "--algo", "none"), "trains nothing"), (("--measure-exchange", "2", "--train-samples", "7"), "trains nothing"),
                        (("--measure-exchange", "2", "--lr", "5"), "excludes"), (("--measure-exchange", "2", "--epochs", "3"), "excludes"),
                        (("--measure-overlap", "2", "--evaluate", "rank-0"), "excludes"), (("--measure-overlap", "2", "--epochs", "3"), "excludes")):
        code, output = measure(folder, *two, *extra)
        expect(code != 0 and text in output, f"{' '.join(extra)} is refused")
    code, output = run(folder, *two, "--shares", "1,2", "--device", "cuda")
    expect(code != 0 and "are for training with --device cpu" in output, "unequal shares on GPUs are refused")
