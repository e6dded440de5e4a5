#!/usr/bin/env python3
"""Measures all-reduces on one host beside those of other libraries, in turn, and prints their ratios.

usage: tools/measure_peers.py BUILD --peer NAME=COMMAND [--peer ...] [--processes COUNTS] [--runs N] [--first BYTES] [--last BYTES] [--json OUT.json]

COMMAND starts bench/peers/all_reduce.c under another MPI, or bench/peers/deepspeed_shm.py: {n} in it is the number of processes, and the
sizes are added to it. For each number of processes and each size, each run takes rondo-perf (by fork, ordinary memory and memory of
rondo::reachable_memory()), then each peer, so that what is compared was measured within seconds: on a virtual machine, cores that share
a cache now may not do so a minute later. A ratio is Rondo's median of the runs over the least median of all peers. Nothing else should run on the machine meanwhile. Example, for an
MPI in $M:

    gcc -O2 -I$M/include bench/peers/all_reduce.c -o all_reduce -L$M/lib -lmpi
    tools/measure_peers.py build-bench --peer "Intel MPI=$M/bin/mpirun -n {n} ./all_reduce"
"""
import argparse
import itertools
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import tempfile

FACTOR = 4


def run(command):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
    if done.returncode != 0 or "WRONG" in done.stdout:
        raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout


def rondo_rows(build, processes, registered, size):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "rows.json"
        run([build / "bench/rondo-perf", "--algo", "auto", "--processes", processes, *(["--registered"] if registered else []), "-b", size, "-e", size,
             "--json", file])
        return {(row["bytes"], row["in_place"]): row["time_us_median"] for row in json.loads(file.read_text())["rows"]}


def peer_rows(command, processes, size):
    text = run([*shlex.split(command.format(n=processes)), size, size, FACTOR])
    rows = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in ("out", "in_place"):
            rows[int(words[0]), words[1] == "in_place"] = float(words[2])
    return rows


def medians(build, processes, size, options):
    """By who, then by size and whether in place."""
    times = {}
    ways = {"Rondo, ordinary memory": lambda: rondo_rows(build, processes, False, size),
            "Rondo, reachable memory": lambda: rondo_rows(build, processes, True, size)}
    for peer in options.peer:
        name, command = peer.split("=", 1)
        ways[name] = lambda command=command: peer_rows(command, processes, size)
    for _ in range(options.runs):
        for who, measure in ways.items():
            for key, us in measure().items():
                times.setdefault(who, {}).setdefault(key, []).append(us)
    return {who: {key: statistics.median(values) for key, values in rows.items()} for who, rows in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--peer", action="append", required=True)
    parser.add_argument("--processes", type=lambda text: [int(part) for part in text.split(",")], default=[2, 4, 8])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--first", type=int, default=4)
    parser.add_argument("--last", type=int, default=64 << 20)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    found = []
    print("| processes | bytes | | ordinary, us | reachable, us | best peer, us | ordinary / peer | reachable / peer |\n|---|---|---|---|---|---|---|---|")
    sizes = [options.first]
    while sizes[-1] * FACTOR <= options.last:
        sizes.append(sizes[-1] * FACTOR)
    for processes, size in itertools.product(options.processes, sizes):
        by_who = medians(options.build.resolve(), processes, size, options)
        ordinary, reachable = by_who["Rondo, ordinary memory"], by_who["Rondo, reachable memory"]
        peers = {who: rows for who, rows in by_who.items() if not who.startswith("Rondo")}
        for key in sorted(ordinary):
            best = min((who for who in peers if key in peers[who]), key=lambda who: peers[who][key])
            us = peers[best][key]
            print(f"| {processes} | {key[0]} | {'in place' if key[1] else 'out'} | {ordinary[key]:.2f} | {reachable[key]:.2f} | {us:.2f} ({best}) | "
                  f"{ordinary[key] / us:.2f} | {reachable[key] / us:.2f} |", flush=True)
            found.append({"processes": processes, "bytes": key[0], "in_place": key[1], "us": {who: rows[key] for who, rows in by_who.items() if key in rows}})
        if options.json:  # after each size, so that a failure leaves what was measured
            options.json.write_text(json.dumps({"rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
