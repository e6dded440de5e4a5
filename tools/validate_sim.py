#!/usr/bin/env python3
"""Compares what rondo-sim says with what test hosts take, and writes tables in Markdown.

usage: tools/validate_sim.py BUILD [--cases usual|apart|far|servers|traced] [--json OUT.json] [--rates RATES] [--hosts COUNTS] [--quick]

The network is measured once at each rate, on two hosts. Then calls and training steps are measured on each number of hosts, and
simulated on the network that was measured:

usual   calls of several sizes, and steps of ResNet-50, overlapped with a backprop that sleeps
apart   the same at another rate, with other numbers of hosts and sizes, and hosts of two ranks: kept apart while rondo-sim was written
far     calls between hosts whose messages are under way for 3 ms
servers exchanges with parameter servers, by the trainer: one on a host of its own, or one beside each worker
traced  steps of ResNet-18, simulated from a timeline that was written at 2 Gbit/s

Needs root, as
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
    "halving_doubling": ([32 * KIB, 256 * KIB, 2048 * KIB], (4, 8)),
    "recursive_doubling": ([32 * KIB, 256 * KIB], (4, 8)),
    "naive": ([256 * KIB, 2048 * KIB], (4, 8)),
    "hierarchical": ([256 * KIB, 2048 * KIB], (2, 4, 8)),
}
FAR = {
    "ring": ([32 * KIB, 1024 * KIB], (2, 4, 8)),
    "halving_doubling": ([32 * KIB], (4, 8)),
    "recursive_doubling": ([4 * KIB, 32 * KIB], (4, 8)),
    "naive": ([32 * KIB], (4, 8)),
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
EXCHANGED_KIB = (8192, 1024)
# Of the trainer's timeline, and of the steps that are simulated from it. The samples are for 16 minibatches.
TRACED_KIB, TRACED_RATE = 256, "2gbit"
TRACED_BUCKETS_KIB = (1024, 8192)
TRAINER = ("--model", "resnet18", "--batch-size", 64, "--train-samples", 1024, "--test-samples", 100)
DELAY_US = {"far": 3000}
# By cases: calls, rates, numbers of hosts.
CASES = {"usual": (CALLS, "1gbit,400mbit,200mbit", "2,4,8"), "apart": (APART, "300mbit", "3,6"), "far": (FAR, "100mbit", "2,4,8"),
         "servers": ({}, "400mbit,200mbit", "2,4,8"),
         "traced": ({}, "1gbit,400mbit", "2")}  # a host for each core of the machine: they compute


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
    def __init__(self, build, folder, quick, name):
        self.build, self.folder, self.quick, self.name = pathlib.Path(build).resolve(), pathlib.Path(folder), quick, name

    def on_hosts(self, hosts, rate, program, *arguments, ranks_per_host=1, map_by="slot"):
        run([ROOT / "tools/test_hosts.sh", "--hosts", hosts, "--ranks-per-host", ranks_per_host, "--map-by", map_by, "--rate", rate,
             "--delay-us", DELAY_US.get(self.name, 0), "--", self.build / program, *arguments])

    def json_of(self, measure):
        file = self.folder / "out.json"
        measure(file)
        return json.loads(file.read_text())

    def simulated(self, network, *arguments):
        return self.json_of(lambda file: run([self.build / "bench/rondo-sim", "--network", network, "--burst-kib", BURST_KIB, "--json", file, *arguments]))["rows"][0]

    def calls(self, network, hosts, rate):
        for algorithm, (sizes, among) in CASES[self.name][0].items():
            here = RANKS_PER_HOST.get(algorithm, 1)
            if hosts not in among:
                continue
            if self.quick:
                sizes = sizes[:1]
            for size in sizes:
                # So many calls that a link's bucket of saved pauses is empty after the warm-up, except where a call is mostly latency.
                calls = max(5, min(256, 8192 * KIB // size))
                measured = self.json_of(lambda file, size=size, calls=calls: self.on_hosts(
                    hosts, rate, "bench/rondo-perf", "--algo", algorithm, "-b", size, "-e", size, "-n", calls, "-w", max(1, calls // 4), "--json", file, ranks_per_host=here))
                row = next(row for row in measured["rows"] if row["in_place"])
                sim = self.simulated(network, "--ranks", hosts * here, "--ranks-per-host", here, "--strategies", algorithm, "--kib", size // KIB, "--calls", 8)
                what = algorithm if here == 1 else f"{algorithm}, {here} ranks a host"
                yield {"what": f"{what}, {size // KIB} KiB", "measured_us": row["time_us_mean"], "simulated_us": sim["call_us"]["median"]}

    def steps(self, network, hosts, rate):
        buckets = ",".join(str(kib) for kib in BUCKETS_KIB)
        measured = self.json_of(lambda file: self.on_hosts(
            hosts, rate, "bench/rondo-overlap", "--model", "resnet50", "--compute-ms", compute_ms(rate), "--bucket-kib", buckets, "-n", 3, "--json", file))
        for kib, row in zip(BUCKETS_KIB, measured["rows"]):
            sim = self.simulated(network, "--ranks", hosts, "--strategies", "ring", "--model", "resnet50", "--compute-ms", compute_ms(rate), "--bucket-kib", kib)
            yield {"what": f"step of ResNet-50, buckets of {kib} KiB", "measured_us": row["time_us"]["during"]["median"], "simulated_us": sim["step_us"]["median"]}

    def exchanges(self, network, hosts, rate):
        """The library has no call for servers: rondo-sim has formulas for them, of which this tells how far they are right."""
        for kib in EXCHANGED_KIB[:1] if self.quick else EXCHANGED_KIB:
            for servers, here, text in ((1, 1, "a server on a host of its own"), (hosts, 2, "a server beside each worker")):
                measured = self.json_of(lambda file, kib=kib, servers=servers, here=here: self.on_hosts(
                    hosts, rate, "examples/systems/rondo-systems", "--strategy", "server", "--servers", servers, "--measure-exchange", 10, "--exchange-kib", kib,
                    "--json", file, ranks_per_host=here, map_by="node"))  # the last ranks are the servers
                # In the simulation a worker is beside the only server. Its vectors do not take the link, which so carries those of hosts - 1 workers, as here.
                sim = self.simulated(network, "--ranks", hosts, "--strategies", "server", "--servers", servers, "--kib", kib)
                yield {"what": f"{text}, {kib} KiB", "measured_us": measured["exchange_us"]["median"], "simulated_us": sim["call_us"]["median"]}

    def trace_of(self, hosts):
        """A timeline of the trainer's steps at another rate, written once."""
        file = self.folder / f"trace_{hosts}.json"
        if not file.exists():
            self.on_hosts(hosts, TRACED_RATE, "examples/systems/rondo-systems", "--overlap", "--bucket-kib", TRACED_KIB, "--epochs", 1, *TRAINER, "--trace", file)
        return file

    def traced_steps(self, network, hosts, rate):
        trace = self.trace_of(hosts)
        for kib in TRACED_BUCKETS_KIB:
            measured = self.json_of(lambda file, kib=kib: self.on_hosts(
                hosts, rate, "examples/systems/rondo-systems", "--measure-overlap", 8, "--bucket-kib", kib, *TRAINER, "--json", file))
            sim = self.simulated(network, "--ranks", hosts, "--strategies", "ring", "--trace", trace, "--bucket-kib", kib)
            yield {"what": f"step of ResNet-18, buckets of {kib} KiB", "measured_us": measured["modes"]["during"]["step_us"]["median"],
                   "simulated_us": sim["step_us"]["median"]}

    def all_of(self, network, hosts, rate):
        yield from self.calls(network, hosts, rate)
        if self.name in ("usual", "apart") and not self.quick:
            yield from self.steps(network, hosts, rate)
        if self.name == "servers":
            yield from self.exchanges(network, hosts, rate)
        if self.name == "traced":
            yield from self.traced_steps(network, hosts, rate)

    def rows(self, rates, all_hosts):
        for rate in rates:
            network = self.folder / "network.json"
            self.on_hosts(2, rate, "bench/rondo-sim", "--measure", network)
            latency_us = json.loads(network.read_text())["latency_us"]
            if latency_us < DELAY_US.get(self.name, 0):
                raise SystemExit(f"validate_sim: messages are {latency_us} us under way, less than tools/test_hosts.sh delays them")
            for hosts in all_hosts:
                for row in self.all_of(network, hosts, rate):
                    row = {"rate": rate, "hosts": hosts, **row, "network": json.loads(network.read_text())}
                    print(f"| {rate} | {hosts} | {row['what']} | {row['measured_us'] / 1e3:.3f} | {row['simulated_us'] / 1e3:.3f} | {row['simulated_us'] / row['measured_us']:.3f} |", flush=True)
                    yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rates")
    parser.add_argument("--hosts")
    parser.add_argument("--cases", choices=CASES, default="usual")
    parser.add_argument("--quick", action="store_true", help="one call of each algorithm, and no steps")
    options = parser.parse_args()
    _, usual_rates, usual_hosts = CASES[options.cases]
    rates, hosts = options.rates or usual_rates, options.hosts or usual_hosts
    if options.quick and options.cases == "traced":
        parser.error("--quick makes one call of each algorithm, and --cases traced has none")
    print("| rate | hosts | what | measured, ms | simulated, ms | ratio |\n|---|--:|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        validation = Validation(options.build, folder, options.quick, options.cases)
        rows = list(validation.rows(rates.split(","), [int(count) for count in hosts.split(",")]))
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
