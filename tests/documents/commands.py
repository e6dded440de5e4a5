#!/usr/bin/env python3
"""Runs every command of some pages in a small form: commands.py BUILD SOURCES PAGE...

Test hosts are left out, since they need root: their programs run as ranks of this host. So is mpirun where there is none.
"""
import gzip
import os
import pathlib
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

build, sources, *pages = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
# By program: values that replace those of the page, or are added.
SMALL = {
    "rondo-lenet": {"--epochs": "1", "--batch-size": "16"},
    "rondo-systems": {"--epochs": "1", "--batch-size": "16", "--train-samples": "128", "--test-samples": "64", "--measure-overlap": "2",
                      "--measure-exchange": "2", "--exchange-kib": "64"},
    "rondo-perf": {"-b": "4KiB", "-e": "4KiB", "-n": "2", "-w": "1"},
    "rondo-overlap": {"-n": "1", "--compute-ms": "2"},
    "rondo-sim": {"--ranks": "8,1024"},
    "study.py": {"--seeds": "1", "--extra": "--epochs 1 --train-samples 64 --test-samples 32"},
}
# Commands that are tests of their own in tests/meson.build, which are not run a second time.
TESTED = {"/usr/bin/python3 tests/systems/agree_with_torch.py build/tests/write_agreement": "systems_torch"}
PROGRAMS = {*SMALL, "rondo-topo", "test_lenet_trainer", "test_layers_batches", "test_lenet_model"}
# More ranks than cores, which mpirun refuses unless it is told; for ranks that the page has on hosts of their own. Open MPI 4 and 5.
CROWDED = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
ONLY_IF_NAMED = {"--measure-overlap", "--measure-exchange", "--exchange-kib"}
NOT_WITH = {"--measure-overlap": {"--epochs"}, "--measure-exchange": {"--epochs", "--train-samples", "--test-samples"}}


def write_pictures(folder):
    pixels = random.Random(1)
    for name, count in (("train", 128), ("t10k", 64)):
        labels = bytes(pixels.randrange(10) for _ in range(count))
        images = bytes(pixels.randrange(256) for _ in range(28 * 28 * count))
        for kind, header, data in (("images-idx3", struct.pack(">IIII", 2051, count, 28, 28), images),
                                   ("labels-idx1", struct.pack(">II", 2049, count), labels)):
            with gzip.open(folder / f"{name}-{kind}-ubyte.gz", "wb") as file:
                file.write(header + data)


def commands(text):
    return [line for block in re.findall(r"^```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE) for line in block.splitlines()]


def value_of(words, option, default):
    return int(words[words.index(option) + 1]) if option in words else default


def on_this_host(words):
    """Without test hosts, and without MPI where there is no mpirun."""
    if words[0] == "tools/test_hosts.sh":
        end = words.index("--")
        ranks = value_of(words[:end], "--hosts", 2) * value_of(words[:end], "--ranks-per-host", 1)
        words = ["mpirun", "-n", str(ranks), *words[end + 1:]]
    if words[0] == "mpirun" and shutil.which("mpirun") is None:
        words = [word.replace(",mpi", "") for word in ["build/tools/rondo-launch", *words[1:]]]
    return words


def small(words):
    """The command's words up to its program, and from there on."""
    at = next(i for i, word in enumerate(words) if pathlib.Path(word).name in PROGRAMS)
    start, program = words[:at], words[at:]
    name = pathlib.Path(program[0]).name
    useless = {option for measuring, options in NOT_WITH.items() if measuring in program for option in options}
    for option, value in SMALL.get(name, {}).items():
        if option in program:
            program[program.index(option) + 1] = value
        elif option not in ONLY_IF_NAMED | useless:
            program[1:1] = [option, value]
    return start, program


def run(line, folder):
    start, program = small(on_this_host(shlex.split(line)))
    crowded = CROWDED if line.startswith("tools/test_hosts.sh") or len(os.sched_getaffinity(0)) < 2 else {}
    name = pathlib.Path(program[0]).name
    if name in ("rondo-lenet", "rondo-systems", "study.py") and "spirals" not in program:
        program += ["--data", str(folder)]
    if name == "study.py":
        program += ["--out", str(folder), "--pictures", str(folder)]
    # What the command writes goes to the folder; what it reads or starts is in the build.
    words = [re.sub(r"^build/([^/]+)$", rf"{folder}/\1", word) for word in start + program]
    words = [re.sub(r"^build(?=/)", str(build), word) for word in words]
    done = subprocess.run(words, cwd=sources, env=os.environ | crowded, capture_output=True, text=True, timeout=200)
    print({0: "ok:", 77: "left out:"}.get(done.returncode, "FAILED:"), shlex.join(words), flush=True)
    if done.returncode == 77:
        print(done.stdout)
    elif done.returncode != 0 or "Running 0 tests" in done.stdout:
        sys.exit(f"FAILED: {done.stdout}{done.stderr}")


with tempfile.TemporaryDirectory() as name:
    write_pictures(pathlib.Path(name))
    for page in pages:
        for command in commands(page.read_text()):
            if command in TESTED:
                print(f"run by {TESTED[command]}:", command)
            else:
                run(command, pathlib.Path(name))
