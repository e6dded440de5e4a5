#!/usr/bin/env python3
"""Writes the tables of bench/results/tables.md, docs/performance.md, docs/gradients.md and README.md, and the pictures in
docs/pictures/, from bench/results/*.json.

usage: tools/bench_report.py

A table stands between "<!-- table NAME -->" and "<!-- end -->"; what is outside stays as it is. Needs
matplotlib (Debian: python3-matplotlib).
"""
import json
import pathlib
import re
import statistics

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PICTURES = ROOT / "docs" / "pictures"
TUNED = {1: "linear", 2: "nonoverlapping", 3: "recursive doubling", 4: "ring", 5: "segmented ring", 6: "Rabenseifner"}


def load(name):
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def rows(run, algo, in_place=False, what="time_us_median"):
    """Median time in us by size."""
    if run is None:
        return {}
    return {row["bytes"]: row[what] for row in run["rows"] if row["algo"] == algo and row["in_place"] == in_place}


def size(count):
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count} {unit}"
        count //= 1024
    return f"{count} GiB"


def us(value):
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def table(head, body):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])


def source(*names):
    """The commands behind a table."""
    runs = [(name, load(name)) for name in names]
    lines = []
    for _, run in runs:
        if run is None:
            continue
        where = [run["date"], run["machine"]["processor"], f"{run['machine']['cores']} cores"]
        mpi = run["config"].get("mpi")
        lines.append(f"- `{run['command']}` ({', '.join(where)}{'; ' + mpi if mpi else ''})")
    return "\n".join(lines)


def peers_of_two(in_place):
    """For each peer: its own times and auto's beside it, in the same run."""
    peers = {}
    run = load("one_2")
    peers["Open MPI"] = (rows(run, "mpi", in_place), rows(run, "auto", in_place))
    if rows(run, "gloo", in_place):
        peers["Gloo"] = (rows(run, "gloo", in_place), rows(run, "auto", in_place))
    for number, name in TUNED.items():
        tuned = load(f"one_2_tuned_{number}")
        if tuned:
            peers[f"Open MPI, {name}"] = (rows(tuned, "mpi", in_place), rows(tuned, "auto", in_place))
    mpich = load("one_2_mpich")
    if mpich:
        peers["MPICH"] = (rows(mpich, "mpi", in_place), rows(mpich, "auto", in_place))
    return peers


def table_one_2():
    body = []
    mine = {form: rows(load("one_2"), "auto", form) for form in (False, True)}
    copies = rows(load("one_2"), "copy")
    for count in sorted(mine[False]):
        cells = [size(count)]
        for form in (False, True):
            ratios = [(theirs[count] / beside[count], name, theirs[count]) for name, (theirs, beside) in peers_of_two(form).items() if theirs.get(count) and beside.get(count)]
            ratio, name, time = min(ratios)
            cells += [us(mine[form][count]), f"{us(time)} ({name})", f"{1 / ratio:.2f}"]
        cells += [us(copies.get(count)), f"{mine[False][count] / copies[count]:.2f}" if count >= 1 << 20 else ""]
        body.append(cells)
    head = ["size", "Rondo", "best peer", "ratio", "in place", "best peer", "ratio", "both memcpy", "ratio"]
    names = ["one_2"] + [f"one_2_tuned_{n}" for n in TUNED] + ["one_2_mpich"]
    return table(head, body) + "\n\n" + source(*names)


def table_peers():
    peers = peers_of_two(False)
    sizes = [4, 1024, 16384, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
    body = [["Rondo"] + [us(rows(load("one_2"), "auto").get(count)) for count in sizes]]
    body += [[name] + [us(theirs.get(count)) for count in sizes] for name, (theirs, _) in peers.items()]
    return table(["us, out of place"] + [size(count) for count in sizes], body)


def table_crowded():
    body = []
    for ranks in (4, 8):
        run = load(f"one_{ranks}")
        for count in sorted(rows(run, "auto")):
            cells = [str(ranks), size(count)]
            for form in (False, True):
                mine, theirs = rows(run, "auto", form)[count], rows(run, "mpi", form)[count]
                cells += [us(mine), us(theirs), f"{mine / theirs:.2f}"]
            body.append(cells)
    return table(["ranks", "size", "Rondo", "Open MPI", "ratio", "in place", "Open MPI", "ratio"], body) + "\n\n" + source("one_4", "one_8")


def table_busy():
    run = load("busy")
    peers = {"auto": "Rondo, us", "sockets": "sockets", "gloo": "Gloo", "mpi": "Open MPI"}
    measured = {row["peer"] for case in run["cases"] for row in case["rows"]}
    peers = {peer: name for peer, name in peers.items() if peer in measured}
    body = []
    for case in run["cases"]:
        label = f"{case['ranks']}, {case['loops']} loops" + (f", computing {case['compute_us'] / 1000:g} ms" if case["compute_us"] else "")
        for count in dict.fromkeys(row["bytes"] for row in case["rows"]):
            times = {row["peer"]: row["us"] for row in case["rows"] if row["bytes"] == count and not row["in_place"]}
            medians = {peer: statistics.median(values) for peer, values in times.items()}
            best = min(median for peer, median in medians.items() if peer != "auto")
            spread = {peer: f"{us(medians[peer])} ({us(min(values))} to {us(max(values))})" for peer, values in times.items()}
            body.append([label, size(count)] + [spread.get(peer, "-") for peer in peers] + [f"{medians['auto'] / best:.2f}"])
    return table(["ranks", "size"] + list(peers.values()) + ["of the best"], body) + "\n\n" + source("busy")


def table_others():
    run = load("others")
    body = []
    for row in run["rows"]:
        mine = {who: us_ for who, us_ in row["us"].items() if who.startswith("Rondo")}
        ordinary, reachable = mine["Rondo, ordinary memory"], mine["Rondo, reachable memory"]
        best = min((who for who in row["us"] if who not in mine), key=row["us"].get)
        body.append([str(row["processes"]), size(row["bytes"]), "in place" if row["in_place"] else "out of place", us(ordinary), us(reachable),
                     us(row["us"][best]), best, f"{ordinary / row['us'][best]:.2f}", f"{reachable / row['us'][best]:.2f}"])
    head = ["processes", "size", "", "Rondo, ordinary memory, us", "reachable memory", "the best of the others", "", "ordinary / best", "reachable / best"]
    return table(head, body) + "\n\n" + source("others")


def table_direct():
    body = []
    for ranks in (2, 4, 8):
        run = load(f"direct_{ranks}")
        copies = rows(run, "copy")
        for in_place in (True, False):
            mine, ring, theirs = (rows(run, algo, in_place) for algo in ("auto", "ring", "mpi"))
            use, ring_use, their_use = (rows(run, algo, in_place, "use_us_median") for algo in ("auto", "ring", "mpi"))
            for count in sorted(mine):
                body.append([str(ranks), "in place" if in_place else "out of place", size(count), us(mine[count]), us(ring[count]), us(theirs[count]),
                             f"{mine[count] / theirs[count]:.2f}", f"{mine[count] / copies[count]:.2f}" if copies else "",
                             us(use[count]), f"{use[count] / ring_use[count]:.2f}", f"{use[count] / their_use[count]:.2f}"])
    head = ["ranks", "", "size", "Rondo, us", "ring", "Open MPI", "/ Open MPI", "/ memcpy", "use, us", "/ ring's", "/ Open MPI's"]
    return table(head, body) + "\n\n" + source("direct_2", "direct_4", "direct_8")


def table_direct_types():
    full = {form: rows(load("direct_2_f32"), "direct", form) for form in (False, True)}
    body = []
    for count in sorted(full[False]):
        cells = [size(count)]
        for kind in ("bf16", "f16"):
            for form in (False, True):
                cells.append(f"{rows(load(f'direct_2_{kind}'), 'direct', form)[count] / full[form][count]:.2f}")
        body.append(cells)
    return table(["size", "bf16 / f32", "in place", "f16 / f32", "in place"], body) + "\n\n" + source("direct_2_f32", "direct_2_bf16", "direct_2_f16")


def table_ordinary():
    body = []
    for ranks in (3, 4, 8):
        run = load(f"ordinary_{ranks}")
        used = {row["bytes"]: row["used"] for row in run["rows"] if row["algo"] == "auto"}
        for count in sorted(rows(run, "auto")):
            cells = [str(ranks), size(count), used[count]]
            for form in (False, True):
                mine, ring, theirs = (rows(run, algo, form)[count] for algo in ("auto", "ring", "mpi"))
                cells += [us(mine), us(ring), us(theirs), f"{mine / theirs:.2f}"]
            body.append(cells)
    head = ["ranks", "size", "auto", "Rondo, us", "ring", "Open MPI", "ratio", "in place", "ring", "Open MPI", "ratio"]
    return table(head, body) + "\n\n" + source("ordinary_3", "ordinary_4", "ordinary_8")


def table_several():
    body = []
    for layout in ("2x2", "2x4", "4x2"):
        run = load(f"several_{layout}")
        hosts, ranks = layout.split("x")
        for count in sorted(rows(run, "auto")):
            bound = bound_us(int(hosts), count)
            cells = [f"{hosts} × {ranks}", size(count), f"{bound / 1e3:.1f}"]
            for form in (False, True):
                mine = rows(run, "auto", form)[count]
                cells += [f"{mine / 1e3:.1f}", f"{bound / mine:.3f}"]
            cells += [f"{rows(run, algo)[count] / 1e3:.1f}" for algo in ("ring", "mpi")]
            body.append(cells)
    head = ["hosts × ranks", "size", "bound, ms", "Rondo, ms", "bound / Rondo", "in place", "bound / Rondo", "flat ring, ms", "Open MPI, ms"]
    return table(head, body) + "\n\n" + source("several_2x2", "several_2x4", "several_4x2")


def table_several_small():
    body = []
    for layout in ("2x2", "2x4", "4x2"):
        run = load(f"several_{layout}_small")
        hosts, ranks = layout.split("x")
        for count in sorted(rows(run, "auto")):
            cells = [f"{hosts} × {ranks}", size(count)]
            for form in (False, True):
                mine, theirs = (rows(run, algo, form)[count] for algo in ("auto", "mpi"))
                cells += [us(mine), us(theirs), f"{mine / theirs:.2f}"]
            body.append(cells)
    head = ["hosts × ranks", "size", "Rondo, us", "Open MPI, us", "ratio", "in place", "Open MPI, us", "ratio"]
    return table(head, body) + "\n\n" + source("several_2x2_small", "several_2x4_small", "several_4x2_small")


def table_types():
    full = {form: rows(load("one_2_f32"), "auto", form) for form in (False, True)}
    body = []
    for count in sorted(full[False]):
        cells = [size(count), us(full[False][count])]
        for kind in ("bf16", "f16"):
            for form in (False, True):
                cells.append(f"{rows(load(f'one_2_{kind}'), 'auto', form).get(count, 0) / full[form][count]:.2f}" if rows(load(f"one_2_{kind}"), "auto", form).get(count) else "-")
        body.append(cells)
    return table(["size", "f32, us", "bf16 / f32", "in place", "f16 / f32", "in place"], body) + "\n\n" + source("one_2_f32", "one_2_bf16", "one_2_f16")


def bound_us(ranks, count):
    ways = load("wire")["gbit_per_second"]
    return 2 * (ranks - 1) / ranks * count * 8 / (min(ways) * 1e3)


def table_many():
    body = []
    for ranks in (2, 4, 8):
        for run in (load(f"many_{ranks}"), load(f"many_{ranks}_large")):
            if run is None:
                continue
            for count in sorted(rows(run, "ring")):
                ring = rows(run, "ring")[count]
                bound = bound_us(ranks, count)
                body.append([str(ranks), size(count), f"{bound / 1e3:.1f}", f"{ring / 1e3:.1f}", f"{bound / ring:.3f}"]
                            + [f"{rows(run, algo)[count] / 1e3:.1f}" if rows(run, algo) else "-" for algo in ("naive", "mpi")])
    two_by_two = load("many_2x2")
    for count, ring in rows(two_by_two, "ring").items():
        bound = bound_us(4, count)
        body.append(["2 × 2 ranks", size(count), f"{bound / 1e3:.1f}", f"{ring / 1e3:.1f}", f"{bound / ring:.3f}", "-", f"{rows(two_by_two, 'mpi')[count] / 1e3:.1f}"])
    wire = load("wire")
    names = [f"many_{ranks}{kind}" for ranks in (2, 4, 8) for kind in ("", "_large")] + ["many_2x2"]
    return (table(["hosts", "size", "bound, ms", "ring, ms", "bound / ring", "naive, ms", "Open MPI, ms"], body)
            + f"\n\n- the wire: `{wire['command']}` ({wire['date']}): {wire['gbit_per_second'][0]} and {wire['gbit_per_second'][1]} Gbit/s, both ways at once, the best of three runs of `iperf3 --time 4 --bidir`\n" + source(*names))


def table_many_slots():
    runs = [(kib, load(f"many_8_slots_{kib}")) for kib in (8, 16, 32, 64, 128)]
    body = [["ms"] + [f"{rows(run, 'ring')[8 << 20] / 1e3:.1f}" for _, run in runs]]
    return table(["slot"] + [f"{kib} KiB" for kib, _ in runs], body) + "\n\n" + source(*[f"many_8_slots_{kib}" for kib, _ in runs])


def table_many_small():
    body = []
    for ranks in (2, 4, 8):
        run = load(f"many_{ranks}_small")
        used = {row["bytes"]: row["used"] for row in run["rows"] if row["algo"] == "auto"}
        for count in sorted(rows(run, "auto")):
            mine, theirs = rows(run, "auto")[count], rows(run, "mpi")[count]
            body.append([str(ranks), size(count), used[count], us(mine), us(theirs), f"{mine / theirs:.2f}"])
    return table(["hosts", "size", "auto", "Rondo, us", "Open MPI, us", "ratio"], body) + "\n\n" + source(*[f"many_{ranks}_small" for ranks in (2, 4, 8)])


def table_parts():
    run = load("parts")
    body = []
    for row in run["benchmarks"]:
        rate = f"{row['bytes_per_second'] / 1e9:.1f}" if "bytes_per_second" in row else ""
        name = row["name"].replace("/manual_time", "").replace("/real_time", "")
        keep = not name.startswith("reduce") or re.match(r"reduce (f32|f16|bf16|f64|i32|u8) (sum|max|prod)/", name)
        if keep:
            body.append([name, f"{row['real_time']:,.0f}", rate])
    context = run["context"]
    return table(["part", "ns", "10⁹ bytes/s"], body) + f"\n\n- `build-bench/bench/rondo-parts --benchmark_min_time=0.05` ({context['date'][:10]}, {context['num_cpus']} cores)"


MODEL_SIZES = [64, 1024, 16384, 262144, 8 << 20]


def compared(model, measured):
    return f"{us(model)} / {us(measured)} ({measured / model - 1:+.0%})" if measured else "-"


def hosts_model(algo, ranks, count, hop_us):
    # 1 Gbit/s is 125 bytes a us.
    vector_us = count / (min(load("wire")["gbit_per_second"]) * 125)
    rounds = ranks.bit_length() - 1
    if algo == "ring":
        return 2 * (ranks - 1) * (hop_us + vector_us / ranks)
    if algo == "naive":
        return 2 * hop_us + (ranks - 1) * vector_us
    return rounds * (hop_us + vector_us)


def table_model_hosts():
    algos = {"ring": "2(n−1)·(α + S/nB)", "naive": "2α + (n−1)·S/B", "recursive_doubling": "log2 n·(α + S/B)"}
    body = []
    names = []
    for ranks in (2, 4, 8):
        small, large = load(f"many_{ranks}_model"), load(f"many_{ranks}")
        names += [f"many_{ranks}_model", f"many_{ranks}"]
        hop_us = rows(small, "ring")[4] / (2 * (ranks - 1))
        for count in MODEL_SIZES:
            cells = [str(ranks), us(hop_us), size(count)]
            for algo in algos:
                measured = rows(small, algo).get(count) or rows(large, algo).get(count)
                cells.append(compared(hosts_model(algo, ranks, count, hop_us), measured))
            body.append(cells)
    head = ["hosts", "α, us", "size"] + [f"{algo}: {formula}" for algo, formula in algos.items()]
    return "Between hosts, us, model / measured:\n\n" + table(head, body) + "\n\n" + source(*names)


def table_model_memory():
    algos = {"ring": "2(n−1)·α + k·2(n−1)/n·S·b", "naive": "2α + 2(n−1)·S·b", "one_shot": "a + k·n·S·b/2"}
    body = []
    for ranks in (2, 4):
        run = load(f"one_{ranks}_model")
        crowd = max(1, -(-ranks // run["machine"]["cores"]))
        hop_us = rows(run, "ring")[4] / (2 * (ranks - 1))
        post_us = rows(run, "one_shot")[4]
        ring_bytes = 2 * (ranks - 1) / ranks * (256 << 10)
        byte_us = (rows(run, "ring")[256 << 10] - 2 * (ranks - 1) * hop_us) / (crowd * ring_bytes)
        model = {"ring": lambda s: 2 * (ranks - 1) * hop_us + crowd * 2 * (ranks - 1) / ranks * s * byte_us,
                 "naive": lambda s: 2 * hop_us + 2 * (ranks - 1) * s * byte_us,
                 "one_shot": lambda s: post_us + crowd * ranks * s * byte_us / 2}
        for count in [1024, 16384, 65536, 262144, 1 << 20, 16 << 20]:
            cells = [str(ranks), us(hop_us), us(post_us), f"{1e-3 / byte_us:.1f}", size(count)]
            body.append(cells + [compared(model[algo](count), rows(run, algo).get(count)) for algo in algos])
    head = ["ranks", "α, us", "a, us", "1/b, 10⁹ bytes/s", "size"] + [f"{algo}: {formula}" for algo, formula in algos.items()]
    return "In memory, us, model / measured:\n\n" + table(head, body) + "\n\n" + source("one_2_model", "one_4_model")


def table_readme_one():
    body = []
    for row in load("others")["rows"]:
        if row["processes"] != 2 or row["in_place"] or row["bytes"] not in (4, 1024, 16384, 65536, 262144, 1 << 20, 16 << 20, 64 << 20):
            continue
        times = row["us"]
        open_mpi = min(time for who, time in times.items() if who.startswith("Open MPI"))
        body.append([size(row["bytes"])] + [us(time) for time in (times["Rondo, reachable memory"], times["Rondo, ordinary memory"], times["Intel MPI"], times["MPICH"], open_mpi)])
    return table(["size", "Rondo, reachable memory", "Rondo, ordinary memory", "Intel MPI", "MPICH", "Open MPI"], body)


def table_readme_many():
    body = []
    for ranks in (2, 4, 8):
        run = load(f"many_{ranks}")
        body.append([str(ranks), f"{bound_us(ranks, 8 << 20) / 1e3:.1f}"] + [f"{rows(run, algo)[8 << 20] / 1e3:.1f}" for algo in ("ring", "naive", "mpi")])
    return table(["hosts", "the wire's limit", "ring", "naive", "Open MPI"], body)


def table_overlap_lenet():
    body = []
    runs = {"one host, batch 256": "overlap_one_host", "two hosts, 25 Mbit/s, batch 4096": "overlap_two_hosts",
            "two hosts, 300 Mbit/s, batch 256": "overlap_two_hosts_256",
            "ResNet-18, two hosts, 1 Gbit/s, batch 64": "overlap_resnet18_two_hosts"}
    for label, name in runs.items():
        run = load(name)
        if run is None:
            continue
        def spread(mode, what, run=run):
            times = run["modes"][mode][what]
            return f"{times['median'] / 1e3:.2f} ({times['low'] / 1e3:.2f} to {times['high'] / 1e3:.2f})"
        def ratio(what, a, b, run=run):
            return f"{run['modes'][a][what]['median'] / run['modes'][b][what]['median']:.3f}"
        share = run["communication_us"] / run["modes"]["alone"]["backward_us"]["median"]
        hidden = f"{run['hidden']:.3f} / {run['most_hidden']:.3f}" if share > 0.05 else "too little to hide"
        body.append([label, f"{share * 100:.1f} %"] + [spread(mode, "exchanged_us") for mode in ("alone", "after", "during")]
                    + [hidden, ratio("backward_us", "during", "alone"), ratio("step_us", "during", "after"), ratio("step_us", "during", "alone")])
    head = ["", "communication / backprop", "T_A", "T_B", "T_C", "H / H_max", "backprop C/A", "step C/B", "step C/A"]
    return table(head, body) + "\n\n" + source(*runs.values())


def overlap_rows(hosts):
    run = load(f"overlap_resnet50_{hosts}")
    return run["rows"] if run else []


def table_overlap_resnet():
    body = []
    for hosts in (2, 4, 8):
        for row in overlap_rows(hosts):
            during = row["time_us"]["during"]
            cap = f"{row['bucket_bytes'] >> 10}" + (" (chosen)" if row["chosen"] else "")
            body.append([str(hosts), cap, str(row["buckets"]), f"{row['time_us']['alone']['median'] / 1e3:.1f}", f"{row['time_us']['after']['median'] / 1e3:.1f}",
                         f"{during['median'] / 1e3:.1f} ({during['low'] / 1e3:.1f} to {during['high'] / 1e3:.1f})",
                         f"{row['hidden']:.3f}", f"{row['most_hidden']:.3f}", f"{row['hidden'] / row['most_hidden']:.3f}", f"{row['us_per_mark']:.2f}"])
    head = ["hosts", "cap, KiB", "buckets", "T_A, ms", "T_B, ms", "T_C, ms", "H", "H_max", "H / H_max", "us/mark"]
    return table(head, body) + "\n\n" + source(*[f"overlap_resnet50_{hosts}" for hosts in (2, 4, 8)])


def draw_buckets():
    figure, axis = plt.subplots(figsize=(7, 4.5))
    for hosts in (2, 4, 8):
        rows_of = sorted((row for row in overlap_rows(hosts) if not row["chosen"]), key=lambda row: row["bucket_bytes"])
        line, = axis.plot([row["bucket_bytes"] / 1024 for row in rows_of], [row["time_us"]["during"]["median"] / 1e3 for row in rows_of],
                          marker="o", label=f"{hosts} hosts")
        for row in overlap_rows(hosts):
            if row["chosen"]:
                axis.plot(row["bucket_bytes"] / 1024, row["time_us"]["during"]["median"] / 1e3, marker="*", markersize=14, color=line.get_color())
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("cap of a bucket, KiB (star: what the reducer chose)")
    axis.set_ylabel("backprop and communication, ms")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    axis.set_title("ResNet-50's gradients, backprop of 1 s, 1 Gbit/s links")
    save(figure, "buckets.svg")


def save(figure, name):
    PICTURES.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(PICTURES / name, metadata={"Date": None})
    plt.close(figure)


def draw_one_host():
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5))
    lines = [("Rondo", rows(load("one_2"), "auto")), ("Rondo, naive", rows(load("one_2"), "naive"))]
    lines += [(name, theirs) for name, (theirs, _) in peers_of_two(False).items() if name in ("Open MPI", "Open MPI, segmented ring", "MPICH", "Gloo")]
    for name, times in lines:
        sizes = sorted(times)
        axes[0].loglog(sizes, [times[count] for count in sizes], marker="o", markersize=3, label=name)
        axes[1].semilogx(sizes, [count / times[count] * 1e-3 for count in sizes], marker="o", markersize=3, label=name)
    axes[0].set_ylabel("time, us")
    axes[1].set_ylabel("bus bandwidth, 10⁹ bytes/s")
    for axis in axes:
        axis.set_xlabel("bytes")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    figure.suptitle("all_reduce of f32, sum, 2 ranks of one host, out of place")
    save(figure, "one_host.svg")


def draw_many_hosts():
    figure, axis = plt.subplots(figsize=(7, 4.5))
    hosts = [2, 4, 8]
    count = 8 << 20
    for algo, name in (("ring", "Rondo, ring"), ("naive", "Rondo, naive"), ("mpi", "Open MPI")):
        axis.plot(hosts, [rows(load(f"many_{n}"), algo)[count] / 1e3 for n in hosts], marker="o", label=name)
    axis.plot(hosts, [bound_us(n, count) / 1e3 for n in hosts], linestyle="--", color="gray", label="what the wire allows: 2(n−1)/n · S/B")
    axis.set_xticks(hosts)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("hosts")
    axis.set_ylabel("time, ms")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    axis.set_title("all_reduce of 8 MiB between hosts with 1 Gbit/s links")
    save(figure, "many_hosts.svg")


def fill(document, tables):
    file = ROOT / document
    text = file.read_text()
    for name, make in tables.items():
        start = f"<!-- table {name} -->"
        pattern = re.compile(re.escape(start) + r".*?<!-- end -->", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"{document} has no place for the table {name}")
        made = f"{start}\n{make()}\n<!-- end -->"
        text = pattern.sub(lambda _, made=made: made, text)
    file.write_text(text)


# All rows and the commands of these are in bench/results/tables.md; docs/performance.md has the rows in which one of the
# cells is among the words, or all rows without words.
TABLES = {
    "one_2": (table_one_2, ["4 B", "1 KiB", "16 KiB", "256 KiB", "1 MiB", "16 MiB", "64 MiB"]),
    "peers": (table_peers, None),
    "direct": (table_direct, ["16 KiB", "1 MiB", "16 MiB"]),
    "direct_types": (table_direct_types, ["64 KiB", "4 MiB", "64 MiB"]),
    "ordinary": (table_ordinary, ["64 KiB", "1 MiB"]),
    "crowded": (table_crowded, ["4 B", "1 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB"]),
    "busy": (table_busy, []),
    "others": (table_others, ["4 B", "1 KiB", "16 KiB", "64 KiB", "1 MiB", "16 MiB"]),
    "types": (table_types, ["4 B", "1 KiB", "64 KiB", "1 MiB", "64 MiB"]),
    "many": (table_many, ["8 MiB"]),
    "several": (table_several, ["64 MiB"]),
    "several_small": (table_several_small, ["1 KiB", "64 KiB"]),
    "many_small": (table_many_small, ["64 B", "1 KiB", "4 KiB", "16 KiB", "64 KiB", "1 MiB"]),
    "many_slots": (table_many_slots, []),
    "parts": (table_parts, ["barrier/ranks:2", "all_reduce/ranks:2/floats:1", "all_reduce_async/ranks:2", "FIFO there and back", "FIFO stream/65536",
                            "read both operands/524288", "reduce f32 sum/524288", "reduce f16 sum/524288", "reduce bf16 sum/524288",
                            "reduce f32 sum/67108864", "copy cached/67108864", "copy non-temporal/67108864"]),
    "model_hosts": (table_model_hosts, ["64 B", "1 KiB", "16 KiB", "8 MiB"]),
    "model_memory": (table_model_memory, ["1 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "16 MiB"]),
}


def shortened(text, words, name):
    """The rows of a table that hold one of the words, and a link to the whole table."""
    lines = text.split("\n")
    rows_of = [line for line in lines if line.startswith("|")]
    absent = [word for word in words if not any(f"| {word} |" in row for row in rows_of)]
    if absent:
        raise SystemExit(f"the table {name} has no rows with {absent}")
    kept = rows_of[:2] + [row for row in rows_of[2:] if not words or any(f"| {word} |" in row for word in words)]
    before = lines[:lines.index(rows_of[0])]
    return "\n".join(before + kept + ["", f"[All rows, and the commands](../bench/results/tables.md#{name})"])


def main():
    fill("bench/results/tables.md", {name: make for name, (make, _) in TABLES.items()})
    fill("docs/performance.md", {name: lambda name=name, make=make, words=words: shortened(make(), words, name)
                                 for name, (make, words) in TABLES.items() if words is not None})
    fill("README.md", {"one": table_readme_one, "many": table_readme_many})
    fill("docs/gradients.md", {"overlap_lenet": table_overlap_lenet, "overlap_resnet": table_overlap_resnet})
    plt.rcParams["svg.hashsalt"] = "rondo"
    draw_buckets()
    draw_one_host()
    draw_many_hosts()


if __name__ == "__main__":
    main()
