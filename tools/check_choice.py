#!/usr/bin/env python3
"""Shows how near what `auto` chooses is to the best algorithm, between test hosts.

usage: tools/check_choice.py BUILD [--hosts COUNTS] [--ranks-per-host COUNTS] [--rates RATES] [--delays US] [--runs N] [--json OUT.json]

For each number of hosts and ranks, rate and delay, and for nine sizes of each collective: the median of the runs of what `auto` takes,
over the least median of all algorithms that carry the call. Prints a row for each case that is more than 10 % above the best, and how
many cases there are. Needs root, as tools/test_hosts.sh does; exit code 77, with the reason, where it cannot make hosts. Nothing else
should run on the machine meanwhile.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAT = {
    "all_reduce": ("ring", "recursive_doubling", "halving_doubling", "naive"),
    "reduce_scatter": ("ring", "tree"),
    "all_gather": ("ring", "tree"),
    "broadcast": ("ring", "tree", "naive"),
    "reduce": ("ring", "tree"),
}
SIZES = ("64", "1MiB", "3.3635")  # first, last and factor of nine


def run(command):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    environment.update(OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1")
    done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
    if done.returncode == 77:
        print(f"skipped: {done.stdout}{done.stderr}")
        sys.exit(77)
    if done.returncode != 0:
        raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")


def rows_of(build, case, collective, algorithms, folder):
    """The rows out of place of one run."""
    file = folder / "rows.json"
    delay = ["--delay-us", case["delay_us"]] if case["delay_us"] else []
    run([ROOT / "tools/test_hosts.sh", "--hosts", case["hosts"], "--ranks-per-host", case["ranks_per_host"], "--rate", case["rate"], *delay, "--",
         build / "bench/rondo-perf", "--op", collective, "-n", 20, "-w", 4, "--algo", ",".join(("auto", *algorithms)), "-b", SIZES[0], "-e", SIZES[1], "-f", SIZES[2],
         "--json", file])
    return [row for row in json.loads(file.read_text())["rows"] if not row["in_place"]]


def cases_of(options):
    for hosts in options.hosts:
        for here in options.ranks_per_host:
            for rate in options.rates:
                for delay in options.delays:
                    yield {"hosts": hosts, "ranks_per_host": here, "rate": rate, "delay_us": delay}


def algorithms_for(case, collective):
    hierarchical = case["ranks_per_host"] > 1 and collective == "all_reduce"
    return (*FLAT[collective], "hierarchical") if hierarchical else FLAT[collective]


def ratios(build, case, collective, runs, folder):
    times, used = {}, {}
    for _ in range(runs):
        for row in rows_of(build, case, collective, algorithms_for(case, collective), folder):
            times.setdefault(row["bytes"], {}).setdefault(row["algo"], []).append(row["time_us_median"])
            if row["algo"] == "auto":
                used.setdefault(row["bytes"], []).append(row["used"])
    for size, by_algorithm in times.items():
        medians = {algorithm: statistics.median(values) for algorithm, values in by_algorithm.items()}
        # Each run measures its links anew, and may choose otherwise: the worst choice counts. What was chosen is also measured by its own
        # name: the lesser of the two counts, so that noise does not.
        choices = {name: min(medians["auto"], medians[name]) if len(set(used[size])) == 1 else medians[name] for name in used[size]}
        worst = max(choices, key=choices.get)
        best = min(medians, key=medians.get)
        yield {**case, "collective": collective, "bytes": size, "used": worst, "best": best, "ratio": choices[worst] / medians[best], "medians_us": medians}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--hosts", type=numbers, default=[2, 3, 4, 6, 8])
    parser.add_argument("--ranks-per-host", type=numbers, default=[1, 2])
    parser.add_argument("--rates", type=lambda text: text.split(","), default=["200mbit", "1gbit", "10gbit"])
    parser.add_argument("--delays", type=numbers, default=[0, 1000])
    parser.add_argument("--collectives", type=lambda text: text.split(","), default=list(FLAT))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases_of(options):
            for collective in options.collectives:
                for row in ratios(options.build.resolve(), case, collective, options.runs, pathlib.Path(folder)):
                    found.append(row)
                    if row["ratio"] > 1.1:
                        medians = ", ".join(f"{name} {us:.0f}" for name, us in row["medians_us"].items())
                        print(f"{row['ratio']:.2f}: {row['hosts']} x {row['ranks_per_host']} at {row['rate']} and {row['delay_us']} us, {collective} of "
                              f"{row['bytes']} bytes by {row['used']}; {medians}", flush=True)
    above = sum(row["ratio"] > 1.1 for row in found)
    print(f"{above} of {len(found)} cases are more than 10 % above the best; the worst is {max(row['ratio'] for row in found):.2f}")
    if options.json:
        options.json.write_text(json.dumps({"rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
