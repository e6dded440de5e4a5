#!/usr/bin/env python3
"""Measures how long workers exchange gradients with parameter servers, by naive and by ring, on test hosts.

usage: tools/measure_exchange.py BUILD [--json OUT.json] [--workers 1,2,3,4,7] [--rate 1gbit] [--exchange-kib 8192] [--times 10]

Each worker is a host. One server has a host of its own; as many servers as workers are beside them. Needs root, as tools/test_hosts.sh
does; exit code 77, with the reason, where it cannot make hosts. Nothing else should run on the machine meanwhile.
"""
import argparse
import json
import pathlib
import tempfile

from validate_sim import ROOT, run


def arrangements(workers):
    """Of this many workers: what is measured, the options of test_hosts.sh, and those of rondo-systems."""
    yield "one server", ["--hosts", workers + 1], ["--strategy", "server"]
    if workers > 1:
        yield "naive", ["--hosts", workers], ["--algo", "naive"]
        yield "ring", ["--hosts", workers], []
        yield "as many servers", ["--hosts", workers, "--ranks-per-host", 2, "--map-by", "node"], ["--strategy", "server", "--servers", workers]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--workers", default="1,2,3,4,7")
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--exchange-kib", type=int, default=8192)
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args()
    program = options.build.resolve() / "examples/systems/rondo-systems"
    rows = []
    print("| workers | how | ms |\n|--:|---|--:|")
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "out.json"
        for workers in (int(count) for count in options.workers.split(",")):
            for how, hosts, exchange in arrangements(workers):
                run([ROOT / "tools/test_hosts.sh", *hosts, "--rate", options.rate, "--", program, "--measure-exchange", options.times,
                     "--exchange-kib", options.exchange_kib, *exchange, "--json", file])
                rows.append({"workers": workers, "how": how, "bytes": options.exchange_kib << 10, **json.loads(file.read_text())["exchange_us"]})
                print(f"| {workers} | {how} | {rows[-1]['median'] / 1e3:.1f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"rate": options.rate, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
