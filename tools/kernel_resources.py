#!/usr/bin/env python3
"""Shows the registers and stack that the kernels of a build use: kernel_resources.py BUILD_FOLDER

Prints the range over all types and operations, and fails where a kernel spills registers to memory.
"""
import json
import pathlib
import sys

kernels = [json.loads(line) for file in sorted(pathlib.Path(sys.argv[1]).rglob("*.resources"))
           for line in file.read_text().splitlines()]
if not kernels:
    print("no kernels were built: nvcc was not found, or the option cuda is disabled")
    sys.exit(0)
print(f"{'kernels':<18} {'arch':<7} {'how many':>8} {'registers':>11} {'stack bytes':>12} {'spilled':>8}")
for name, mark in (("ring and naive", "ring_kernel"), ("one_shot", "one_shot_kernel"), ("direct", "direct_kernel"), ("pairwise", "pairwise_kernel")):
    for arch in sorted({k["arch"] for k in kernels}):
        some = [k for k in kernels if mark in k["kernel"] and k["arch"] == arch]
        span = lambda key: f"{min(k[key] for k in some)} to {max(k[key] for k in some)}"
        print(f"{name:<18} {arch:<7} {len(some):>8} {span('registers'):>11} {span('stack'):>12} {sum(k['spilled'] for k in some):>8}")
spilling = [k["kernel"] for k in kernels if k["spilled"]]
for kernel in spilling:
    print(f"spills: {kernel}")
sys.exit(1 if spilling else 0)
