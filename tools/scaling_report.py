#!/usr/bin/env python3
"""Writes the tables of docs/scaling.md and the table of servers in docs/trainer.md, and draws docs/pictures/ranks.svg and exchange.svg, from
bench/results/sim_*.json and exchange.json.

usage: tools/scaling_report.py

The results are those of tools/bench.sh sim and exchange. Needs matplotlib (Debian: python3-matplotlib).
"""
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)

from bench_report import fill, load, save, source, table  # noqa: E402

STRATEGIES = {"ring": "ring", "hierarchical": "hierarchical", "halving_doubling": "halving_doubling", "server": "servers, one beside each rank (about the least)"}


def table_validation(names):
    missing = [name for name in names if load(name) is None]
    if missing:
        raise SystemExit(f"scaling_report: bench/results lacks {', '.join(missing)}: start tools/bench.sh sim")
    rows = [row for name in names for row in load(name)["rows"]]
    cases = {}
    for row in rows:
        cases.setdefault((row["rate"], row["what"]), {})[row["hosts"]] = row
    hosts = sorted({row["hosts"] for row in rows})
    body = [[rate, what] + [cell(case.get(count)) for count in hosts] for (rate, what), case in cases.items()]
    return table(["link", "", *(f"{count} hosts: measured, ms; simulated / measured" for count in hosts)], body) + "\n\n" + source(*names)


def cell(row):
    if row is None:
        return "-"
    return f"{row['measured_us'] / 1e3:.2f}; {row['simulated_us'] / row['measured_us']:.3f}"


def values(run, strategy, key, count=None):
    found = {row["ranks"]: row[key] for row in run["rows"]
             if row["strategy"] == strategy and key in row and (count is None or row["bytes"] == count)}
    return dict(sorted(found.items()))


def times(run, strategy, key, ranks, digits, count=None):
    mark = " *" if ranks in values(run, strategy, "beyond_library", count) else ""
    return f"{values(run, strategy, key, count)[ranks]['median'] / 1e3:,.{digits}f}{mark}"


def table_ranks():
    small, model = load("sim_ranks"), load("sim_ranks_model")
    body = []
    for ranks in sorted({row["ranks"] for row in small["rows"]}):
        cells = [f"{ranks:,}"]
        for count in sorted({row["bytes"] for row in small["rows"]}):
            cells += [times(small, strategy, "call_us", ranks, 2, count) for strategy in STRATEGIES]
        body.append(cells)
    head = ["ranks"] + [f"{strategy}, {count >> 10} KiB" for count in sorted({row["bytes"] for row in small["rows"]}) for strategy in STRATEGIES]
    steps = [[f"{ranks:,}"] + [times(model, strategy, "step_us", ranks, 0) for strategy in STRATEGIES]
             for ranks in sorted({row["ranks"] for row in model["rows"]})]
    return ("Calls, ms:\n\n" + table(head, body) + "\n\nA step of ResNet-50, ms, with the best bucket of each:\n\n"
            + table(["ranks", *STRATEGIES], steps) + "\n\n" + source("sim_ranks", "sim_ranks_model"))


def draw_ranks():
    small, model = load("sim_ranks"), load("sim_ranks_model")
    counts = sorted({row["bytes"] for row in small["rows"]})
    figure, axes = plt.subplots(1, len(counts) + 1, figsize=(5 * (len(counts) + 1), 4.5))
    panels = [(small, "call_us", count, f"all_reduce of {count >> 10} KiB, ms") for count in counts] + [(model, "step_us", None, "a step of ResNet-50, ms")]
    for axis, (run, key, count, title) in zip(axes, panels):
        for strategy, label in STRATEGIES.items():
            found = values(run, strategy, key, count)
            refused = values(run, strategy, "beyond_library", count)  # these points have no marker
            line, = axis.loglog(list(found), [spread["median"] / 1e3 for spread in found.values()], marker="o", markersize=3, label=label,
                                markevery=[i for i, ranks in enumerate(found) if ranks not in refused])
            axis.fill_between(list(found), [spread["low"] / 1e3 for spread in found.values()], [spread["high"] / 1e3 for spread in found.values()],
                              color=line.get_color(), alpha=0.2)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("ranks")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    save(figure, "ranks.svg")


def exchange_lines():
    """By what is measured or computed: ms by the number of workers."""
    run = load("exchange")
    rates = load("wire")["gbit_per_second"]
    link_ms = run["rows"][0]["bytes"] * 8 / (sum(rates) / len(rates) * 1e9) * 1e3  # C/B
    workers = sorted({row["workers"] for row in run["rows"]})
    lines = {"2·N·C/B": {n: 2 * n * link_ms for n in workers}, "2C(N−1)/(N·B)": {n: 2 * (n - 1) / n * link_ms for n in workers if n > 1}}
    for row in run["rows"]:
        lines.setdefault(row["how"], {})[row["workers"]] = row["median"] / 1e3
    return workers, lines


COLUMNS = {"2·N·C/B": "2·N·C/B", "one server": "one server, on a host of its own", "naive": "naive, to rank 0", "2C(N−1)/(N·B)": "2C(N−1)/(N·B)",
           "ring": "ring", "as many servers": "N servers, one beside each worker"}


def table_exchange():
    workers, lines = exchange_lines()
    body = [[str(n)] + [f"{lines[how][n]:.1f}" if n in lines[how] else "" for how in COLUMNS] for n in workers]
    return table(["workers N", *COLUMNS.values()], body) + "\n\n" + source("exchange")


def draw_exchange():
    _, lines = exchange_lines()
    figure, axis = plt.subplots(figsize=(7, 4.5))
    computed = {"2·N·C/B": ":", "2C(N−1)/(N·B)": "--"}
    for how, label in COLUMNS.items():
        axis.plot(list(lines[how]), list(lines[how].values()), label=label, linestyle=computed.get(how, "-"), color="gray" if how in computed else None,
                  marker=None if how in computed else "o", markersize=4)
    axis.set_xlabel("workers")
    axis.set_ylabel("an exchange of 8 MiB of gradients, ms")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    save(figure, "exchange.svg")


def main():
    fill("docs/scaling.md", {"validation": lambda: table_validation([f"sim_validation_{rate}" for rate in ("1gbit", "400mbit", "200mbit")]),
                             **{f"validation_{cases}": lambda cases=cases: table_validation([f"sim_validation_{cases}"]) for cases in ("apart", "far", "servers", "traced")},
                             "ranks": table_ranks})
    fill("docs/trainer.md", {"exchange": table_exchange})
    plt.rcParams["svg.hashsalt"] = "rondo"
    draw_ranks()
    draw_exchange()


if __name__ == "__main__":
    main()
