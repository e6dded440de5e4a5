#!/usr/bin/env python3
"""Measures all-reduces of ranks whose cores other programs use, too: by Rondo, and by others that wait in other ways.

usage: tools/measure_busy.py BUILD [--json OUT.json] [--runs 5]

Beside two ranks on two cores run two loops that compute for ever; and three ranks on two cores compute for a millisecond
between calls. Peers: sockets (whoever waits is asleep), Gloo where the program is built with it, and Open MPI, told to yield.
Each run is a run of rondo-perf of its own, in turn; a figure is the mean time of a call on the rank where it is the
greatest, since a few calls that wait for a time slice decide how long a program takes. Nothing else should run on the
machine meanwhile.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

CASES = [  # ranks, loops beside, microseconds of computing between calls
    (2, 2, 0),
    (2, 2, 1000),
    (3, 0, 1000),
]
SIZES = ["-b", "4", "-e", "1MiB", "-f", "64"]


def commands(perf):
    """By peer: how it is started with so many ranks."""
    yield "auto", lambda ranks: [perf, "--processes", ranks, "--algo", "auto"]
    yield "sockets", lambda ranks: [perf, "--processes", ranks, "--algo", "sockets"]
    if "gloo (on one host)" in subprocess.run([perf, "--help"], capture_output=True, text=True, check=True).stdout:
        yield "gloo", lambda ranks: [perf, "--processes", ranks, "--algo", "gloo"]
    yield "mpi", lambda ranks: ["mpirun", "-n", ranks, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", perf, "--algo", "mpi"]


class Loops:
    """Processes that compute for ever, until the block ends."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(self.count)]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def run(command, calls):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "out.json"
        words = [*map(str, command), *SIZES, "-n", str(calls), "--json", str(file)]
        subprocess.run(words, env=environment, capture_output=True, check=True, timeout=600)
        return json.loads(file.read_text())["rows"]


def show(case, rows):
    ranks, loops, compute_us = case
    print(f"\n{ranks} ranks, {loops} loops beside, {compute_us} us of computing between calls: microseconds, median of the runs (least to most)")
    for key in dict.fromkeys((row["bytes"], row["in_place"]) for row in rows):
        times = {row["peer"]: row["us"] for row in rows if (row["bytes"], row["in_place"]) == key}
        words = [f"{peer} {statistics.median(us):.1f} ({min(us):.1f} to {max(us):.1f})" for peer, us in times.items()]
        print(f"{key[0]:>8} B {'in place' if key[1] else '        '}  " + "; ".join(words), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    perf = options.build.resolve() / "bench/rondo-perf"
    everything = []
    for case in CASES:
        ranks, loops, compute_us = case
        rows = []
        for _ in range(options.runs):
            for peer, command in commands(perf):
                with Loops(loops):
                    measured = run([*command(ranks), "--compute-us", compute_us] if compute_us else command(ranks), 200 if compute_us else 0)
                for row in measured:
                    same = [one for one in rows if (one["peer"], one["bytes"], one["in_place"]) == (peer, row["bytes"], row["in_place"])]
                    if not same:
                        same = [{"peer": peer, "bytes": row["bytes"], "in_place": row["in_place"], "us": []}]
                        rows += same
                    same[0]["us"].append(round(row["time_us_mean"], 2))
                    if row["wrong"]:
                        raise SystemExit(f"{peer}: {row['wrong']} elements of {row['bytes']} bytes are wrong")
        show(case, rows)
        everything.append({"ranks": ranks, "loops": loops, "compute_us": compute_us, "rows": rows})
    if options.json:
        options.json.write_text(json.dumps({"cases": everything}, indent=1) + "\n")


if __name__ == "__main__":
    main()
