#!/usr/bin/env python3
"""Draws test accuracy and training loss against epochs and against time, one curve a run.

usage: tools/plot.py OUT.png HISTORY.json [HISTORY.json ...]

The histories are those that rondo-lenet --history writes. Needs matplotlib (Debian:
python3-matplotlib).
"""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)


def label(config):
    return f"{config['ranks']} ranks, batch {config['batch_size']}, lr {config['lr']:.3g}, {config['algo']}"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    out, files = sys.argv[1], sys.argv[2:]
    figure, axes = plt.subplots(2, 2, figsize=(11, 7), sharey="row")
    for file in files:
        run = json.loads(pathlib.Path(file).read_text())
        epochs = [row["epoch"] for row in run["epochs"]]
        seconds = [sum(row["seconds"] for row in run["epochs"][: i + 1]) for i in range(len(epochs))]
        for row, key in enumerate(("test_accuracy", "train_loss")):
            values = [epoch[key] for epoch in run["epochs"]]
            axes[row][0].plot(epochs, values, marker="o", markersize=3, label=label(run["config"]))
            axes[row][1].plot(seconds, values, marker="o", markersize=3, label=label(run["config"]))
    for row, name in enumerate(("test accuracy", "training loss")):
        axes[row][0].set_ylabel(name)
        for axis in axes[row]:
            axis.grid(alpha=0.3)
    axes[1][0].set_xlabel("epoch")
    axes[1][1].set_xlabel("seconds of training")
    axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    main()
