#!/usr/bin/env python3
"""Runs rondo-lenet with its options on a few small pictures: command.py RONDO_LENET [RONDO_SIM]"""
import pathlib
import subprocess
import sys
import tempfile

from trainer_runs import Trainer, expect, write_pictures

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    write_pictures(folder, "train", 230, 1)
    write_pictures(folder, "t10k", 100, 2)
    lenet = Trainer(sys.argv[1], folder)
    two = ("--processes", "2")
    code, plain = lenet.run(*two)
    expect(code == 0 and plain["config"]["ranks"] == 2 and plain["epochs"][1]["test_accuracy"] > 0, "two processes train")
    code, threads = lenet.run("--ranks", "2", "--no-overlap")
    expect(code == 0 and threads["param_hash"] == plain["param_hash"] and not threads["config"]["overlap"], "two threads compute the same bits")
    lenet.goes_on_from_a_checkpoint()
    if len(sys.argv) > 2:
        code, _ = lenet.run(*two, "--overlap", "--bucket-kib", "1", "--trace", folder / "trace")
        simulated = subprocess.run([sys.argv[2], "--trace", folder / "trace", "--ranks", "1000", "--strategies", "ring"],
                                   capture_output=True, text=True, timeout=100)
        expect(code == simulated.returncode == 0 and "# shortest step of 1000 ranks: ring" in simulated.stdout, "rondo-sim reads the trace")
    for option, first, second in (("seed", "1", "2"), ("lr", "0.05", "0.1")):
        expect(lenet.both_say(f"--{option}", ("--data", folder, f"--{option}", first), ("--data", folder, f"--{option}", second)),
               f"ranks with another --{option} are told so")
    expect(lenet.says_that_files_differ(), "ranks with other files are told so")
    lenet.refuses((*two, "--algo", "none"), "is for one rank")
    lenet.refuses((*two, "--algo", "mpi"), "only with --device cpu and under mpirun")
    lenet.refuses((*two, "--overlap", "--no-overlap"), "excludes")
    lenet.refuses((*two, "--checkpoint", folder / "history.json"), "--checkpoint: is the file of --history, too")
    for other in (folder / ".." / folder.name / "x", folder / "x.part"):
        lenet.refuses((*two, "--checkpoint", folder / "x", "--trace", other), "is the file of")
    for lr in ("nan", "-1"):
        lenet.refuses(two, f"--lr: '{lr}' is no number from 0", lr=lr)
    for seed in ("-1", "99999999999999999999"):
        lenet.refuses((*two, "--seed", seed), "--seed: ")
