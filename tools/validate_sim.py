#!/usr/bin/env python3
"""Compares what rondo-sim says with what test hosts take, and writes tables in Markdown.

usage: tools/validate_sim.py BUILD [--json OUT.json] [--rates 1gbit,400mbit,200mbit] [--hosts 2,4,8] [--quick] [--apart]

--apart: cases that were kept apart while rondo-sim was written: another rate, numbers of hosts and sizes, and hosts of two ranks.

The network is measured once at each rate, on two hosts. Then calls of several sizes and steps of ResNet-50, overlapped with a
backprop that sleeps, are measured on each number of hosts, and simulated on the network that was measured. Needs root, as
tools/test_hosts.sh does; exit code 77, with the reason, where it cannot make hosts. Nothing else should run on the machine meanwhile.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KIB = 1 << 10
# By algorithm: sizes of calls, and for how many hosts.
CALLS = {
    "ring": ([32 * KIB, 256 * KIB, 2048 * KIB, 16384 * KIB], (2, 4, 8)),
    "halving_doubling": ([32 * KIB, 256 * KIB], (4, 8)),
    "recursive_doubling": ([32 * KIB, 256 * KIB], (4, 8)),
    "naive": ([256 * KIB, 2048 * KIB], (4, 8)),
}
APART = {
    "ring": ([768 * KIB, 6144 * KIB], (3, 6)),
    "naive": ([768 * KIB], (3, 6)),
    "hierarchical": ([768 * KIB, 6144 * KIB], (3,)),
}
RANKS_PER_HOST = {"hierarchical": 2}
BURST_KIB = 256  # of the token buckets of tools/test_hosts.sh
COMPUTE_MS_AT_1GBIT = 600  # and more on slower links, so that a part of the communication always hides
BUCKETS_KIB = (1024, 25600)


def run(command):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    environment.update(OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1")
    done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
    if done.returncode == 77:  # no test hosts can be made
        print(f"skipped: {done.stdout}{done.stderr}")
        sys.exit(77)
    if done.returncode != 0:
        raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")


def compute_ms(rate):
    return COMPUTE_MS_AT_1GBIT * (1 if rate == "1gbit" else 1000 // int(rate.removesuffix("mbit")))


class Validation:
    def __init__(self, build, folder, quick, cases):
        self.build, self.folder, self.quick, self.cases = pathlib.Path(build).resolve(), pathlib.Path(folder), quick, cases

    def on_hosts(self, hosts, rate, program, *arguments, ranks_per_host=1):
        run([ROOT / "tools/test_hosts.sh", "--hosts", hosts, "--ranks-per-host", ranks_per_host, "--rate", rate, "--",
             self.build / "bench" / program, *arguments])

    def json_of(self, measure):
        file = self.folder / "out.json"
        measure(file)
        return json.loads(file.read_text())

    def simulated(self, network, *arguments):
        return self.json_of(lambda file: run([self.build / "bench/rondo-sim", "--network", network, "--burst-kib", BURST_KIB, "--json", file, *arguments]))["rows"][0]

    def calls(self, network, hosts, rate):
        for algorithm, (sizes, among) in self.cases.items():
            here = RANKS_PER_HOST.get(algorithm, 1)
            if hosts not in among:
                continue
            if self.quick:
                sizes = sizes[:1]
            for size in sizes:
                # So many calls that a link's bucket of saved pauses is empty after the warm-up.
                calls = max(5, 8192 * KIB // size)
                measured = self.json_of(lambda file, size=size, calls=calls: self.on_hosts(
                    hosts, rate, "rondo-perf", "--algo", algorithm, "-b", size, "-e", size, "-n", calls, "-w", max(1, calls // 4), "--json", file, ranks_per_host=here))
                row = next((row for row in measured["rows"] if row["in_place"]), None)
                if row is None:  # halving_doubling carries only what its FIFOs hold, and those are smaller on slower links
                    continue
                sim = self.simulated(network, "--ranks", hosts * here, "--ranks-per-host", here, "--strategies", algorithm, "--kib", size // KIB, "--calls", 8)
                what = algorithm if here == 1 else f"{algorithm}, {here} ranks a host"
                yield {"what": f"{what}, {size // KIB} KiB", "measured_us": row["time_us_median"], "simulated_us": sim["call_us"]["median"]}

    def steps(self, network, hosts, rate):
        buckets = ",".join(str(kib) for kib in BUCKETS_KIB)
        measured = self.json_of(lambda file: self.on_hosts(
            hosts, rate, "rondo-overlap", "--model", "resnet50", "--compute-ms", compute_ms(rate), "--bucket-kib", buckets, "-n", 3, "--json", file))
        for kib, row in zip(BUCKETS_KIB, measured["rows"]):
            sim = self.simulated(network, "--ranks", hosts, "--strategies", "ring", "--model", "resnet50", "--compute-ms", compute_ms(rate), "--bucket-kib", kib)
            yield {"what": f"step of ResNet-50, buckets of {kib} KiB", "measured_us": row["time_us"]["during"]["median"], "simulated_us": sim["step_us"]["median"]}

    def rows(self, rates, all_hosts):
        for rate in rates:
            network = self.folder / "network.json"
            self.on_hosts(2, rate, "rondo-sim", "--measure", network)
            for hosts in all_hosts:
                for row in [*self.calls(network, hosts, rate), *([] if self.quick else self.steps(network, hosts, rate))]:
                    row = {"rate": rate, "hosts": hosts, **row, "network": json.loads(network.read_text())}
                    print(f"| {rate} | {hosts} | {row['what']} | {row['measured_us'] / 1e3:.3f} | {row['simulated_us'] / 1e3:.3f} | {row['simulated_us'] / row['measured_us']:.3f} |", flush=True)
                    yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rates")
    parser.add_argument("--hosts")
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--quick", action="store_true", help="one call of each algorithm, and no steps")
    options = parser.parse_args()
    rates = options.rates or ("300mbit" if options.apart else "1gbit,400mbit,200mbit")
    hosts = options.hosts or ("3,6" if options.apart else "2,4,8")
    print("| rate | hosts | what | measured, ms | simulated, ms | ratio |\n|---|--:|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        validation = Validation(options.build, folder, options.quick, APART if options.apart else CALLS)
        rows = list(validation.rows(rates.split(","), [int(count) for count in hosts.split(",")]))
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
