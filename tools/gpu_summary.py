#!/usr/bin/env python3
"""Compares the results of a run of tools/gpu_check.sh with the targets: gpu_summary.py FOLDER.

Prints a table, and writes summary.json beside the results. A target whose figures are missing is "not measured".
"""
import json
import pathlib
import re
import statistics
import sys

folder = pathlib.Path(sys.argv[1])
targets = []


def load(name):
    try:
        return json.loads((folder / name).read_text())
    except (OSError, ValueError):  # the step that writes the file has failed, and has reported that
        return None


def row(results, algo, size=None, in_place=False):
    found = [r for r in (results or {"rows": []})["rows"]
             if r["algo"] == algo and r["in_place"] == in_place and (size is None or r["bytes"] == size)]
    return found[-1] if found else None


def target(name, measured, limit, unit, smaller_is_better):
    good = None if measured is None else (measured <= limit if smaller_is_better else measured >= limit)
    targets.append({"target": name, "measured": measured, "limit": limit, "unit": unit, "reached": good})


def ring_share(ranks):
    """The time that a ring's bytes take at the rate of the device's own copy, over the ring's time: without slots, and
    with them.

    A rank reads its input and writes its output once: 2 S bytes. It also writes and reads slots, 2 (n - 1) / n S bytes
    each; while they stay in the L2 cache, they use no bandwidth of device memory. A copy of S bytes moves 2 S.
    """
    results = load(f"large_{ranks}.json")
    ring, copy = row(results, "ring"), row(results, "copy")
    if not ring or not copy or not copy["time_us_median"]:
        return None, None
    size = ring["bytes"]
    rate = 2 * size / copy["time_us_median"]
    buffers = ranks * 2 * size
    slots = ranks * 2 * 2 * (ranks - 1) / ranks * size
    return buffers / rate / ring["time_us_median"], (buffers + slots) / rate / ring["time_us_median"]


def direct_share(ranks):
    """The time that direct's bytes take at the rate of the device's own copy, over direct's time: each rank reads S bytes
    and writes S, and nothing else moves."""
    results = load(f"large_{ranks}.json")
    direct, copy = row(results, "direct"), row(results, "copy")
    if not direct or not copy or not direct["time_us_median"]:
        return None
    return ranks * copy["time_us_median"] / direct["time_us_median"]


def epoch_seconds(history):
    return statistics.median(e["seconds"] for e in history["epochs"][1:]) if history else None


for n in (2, 4):
    cached, uncached = ring_share(n)
    target(f"256 MiB, {n} ranks on a device: share of its copy bandwidth, slots counted", uncached, 0.8, "", False)
    target(f"256 MiB, {n} ranks on a device: the same, as if all slots stayed in L2", cached, 0.8, "", False)
    target(f"256 MiB, {n} ranks on a device: direct's share of its copy bandwidth", direct_share(n), 0.8, "", False)
small = row(load("perf_2.json"), "one_shot", 1024)
target("1 KiB, 2 ranks, one call of a replayed graph", small and small["time_us_median"], 15, "us", True)
one, alone = epoch_seconds(load("lenet_1.json")), epoch_seconds(load("lenet_alone.json"))
target("trainer: 1 rank through the communicator, over without", one and alone and one / alone, 1.05, "x", True)
torch_file = folder / "lenet_torch.txt"
torch = [float(t) for t in re.findall(r"epoch.*?([\d.]+) s", torch_file.read_text())][1:] if torch_file.exists() else []
target("trainer: an epoch over PyTorch's", one and torch and one / statistics.median(torch) or None, 0.5, "x", True)
rows = [r for f in folder.glob("*.json") for r in (load(f.name) or {}).get("rows", [])]
wrong = sum(r["wrong"] for r in rows) if rows else None
for name, least in (("lenet_1.json", 0.79), ("lenet_2.json", 0.79), ("lenet_processes.json", 0.79), ("resnet18_1.json", 0.9), ("resnet18_2.json", 0.87)):
    history = load(name)
    target(f"{name}: test accuracy", history and history["epochs"][-1]["test_accuracy"], least, "", False)

steps = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
device = (folder / "devices.txt").read_text().strip() if (folder / "devices.txt").exists() else "unknown"
(folder / "summary.json").write_text(json.dumps(
    {"device": device, "steps": steps, "targets": targets, "wrong_elements": wrong}, indent=2) + "\n")
print(f"\n{device}\n")
for t in targets:
    measured = "not measured" if t["measured"] is None else f"{t['measured']:.3f} {t['unit']}"
    verdict = {None: "", True: "reached", False: "MISSED"}[t["reached"]]
    print(f"{t['target']:<95} {measured:>14}  target {t['limit']}  {verdict}")
print("no elements were checked" if wrong is None else f"{wrong} wrong elements in {len(rows)} rows")
