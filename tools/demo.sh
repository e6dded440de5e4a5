#!/usr/bin/env bash
# Installs missing packages, builds the programs, trains LeNet on Fashion-MNIST with 2 ranks, and compares the
# ring with the naive reduce-to-rank-0 and with MPI.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh --demo
tools/build.sh build -Dmpi=enabled -Dhwloc=enabled -Dbenchmarks=enabled -Dexamples=enabled -- examples/lenet/rondo-lenet bench/rondo-perf

launch=(mpirun -n 2 --oversubscribe)
if [ "$(id -u)" = 0 ]; then launch+=(--allow-run-as-root); fi

echo
echo "== LeNet on Fashion-MNIST, 2 ranks =="
history=build/demo-history.json
"${launch[@]}" build/examples/lenet/rondo-lenet --epochs 4 --history "$history"
python3 - "$history" <<'CHECK'
import json, sys
accuracy = json.load(open(sys.argv[1]))["epochs"][-1]["test_accuracy"]
print(f"\ntest accuracy {accuracy:.4f}: " + ("above 0.70, as it should be" if accuracy > 0.70 else "NOT above 0.70"))
sys.exit(0 if accuracy > 0.70 else 1)
CHECK

echo
echo "== all-reduce: Rondo's choice, naive and MPI, 2 ranks =="
"${launch[@]}" build/bench/rondo-perf -b 1KiB -e 64MiB -f 16
