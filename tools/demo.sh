#!/usr/bin/env bash
# Installs missing packages, builds the programs, trains LeNet on Fashion-MNIST with 2 ranks, and compares the
# ring with the naive reduce-to-rank-0 and with MPI: tools/demo.sh [BUILD_FOLDER]. The folder, build without one, may
# be anywhere: the sources may be on a file system that cannot be written.
set -euo pipefail
source_folder=$(cd "$(dirname "$0")/.." && pwd)
folder=$(realpath -m "${1:-$source_folder/build}")
cd "$source_folder"
source tools/steps.sh

step "packages"
tools/setup.sh --demo
step "build"
tools/build.sh "$folder" -Dmpi=enabled -Dhwloc=enabled -Dbenchmarks=enabled -Dexamples=enabled -- examples/lenet/rondo-lenet bench/rondo-perf

# Bound, since a rank that moves between cores takes longer; also where there are fewer cores than ranks.
launch=(mpirun -n 2 --oversubscribe --bind-to core:overload-allowed)
if [ "$(id -u)" = 0 ]; then launch+=(--allow-run-as-root); fi

step "LeNet on Fashion-MNIST, 2 ranks"
history=$folder/demo-history.json
"${launch[@]}" "$folder/examples/lenet/rondo-lenet" --epochs 4 --history "$history"
python3 - "$history" <<'CHECK'
import json, sys
accuracy = json.load(open(sys.argv[1]))["epochs"][-1]["test_accuracy"]
print(f"\ntest accuracy {accuracy:.4f}: " + ("above 0.70, as it should be" if accuracy > 0.70 else "NOT above 0.70"))
sys.exit(0 if accuracy > 0.70 else 1)
CHECK

step "all-reduce: Rondo's choice, naive and MPI, 2 ranks"
"${launch[@]}" "$folder/bench/rondo-perf" -b 1KiB -e 64MiB -f 16
