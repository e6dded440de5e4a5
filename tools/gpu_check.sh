#!/usr/bin/env bash
# Everything that needs a GPU: tools/gpu_check.sh [FOLDER]. Builds, runs every CUDA test with 1 to 8 ranks
# on one device (threads, then forked processes), compute-sanitizer on a small set, rondo-perf on device
# memory and the trainer; leaves log, results and summary.json in FOLDER (gpu-check). Needs nvcc, g++,
# Meson and Ninja; where packages are missing, .gpu-bundle, which tools/gpu_bundle.sh fills elsewhere.
# Exit code: how many steps failed.
set -uo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-gpu-check}")
mkdir -p "$out"
exec > >(tee "$out/log.txt") 2>&1

PATH=$PATH:/usr/local/cuda/bin
export CUDA_DEVICE_MAX_CONNECTIONS=32 RONDO_TIMEOUT=60
failed=()
# step NAME SECONDS COMMAND...: runs it, and notes how it went.
step() {
  local name=$1 limit=$2 start=$SECONDS code=0
  shift 2
  printf '\n== %s: %s\n' "$name" "$*"
  timeout --kill-after=5 "$limit" "$@" || code=$?
  printf '{"step": "%s", "code": %d, "seconds": %d}\n' "$name" "$code" $((SECONDS - start)) >>"$out/steps.jsonl"
  [ $code = 0 ] || { failed+=("$name"); echo "-- $name failed with $code"; }
  return 0
}
rm -f "$out"/*.json "$out"/lenet_torch.txt  # of an earlier run
: >"$out/steps.jsonl"

nvidia-smi --query-gpu=name,driver_version,memory.total,pci.bus_id --format=csv,noheader | tee "$out/devices.txt" || exit 1
nvcc --version | tail -2
g++ --version | head -1
nvidia-smi topo -m 2>/dev/null || true
git log -1 --format='commit %h' 2>/dev/null || true

setup=(meson setup build-gpu -Dcuda=enabled -Dtests=enabled -Dbenchmarks=enabled -Dexamples=auto)
data=/usr/share/datasets/fashion-mnist
if ! pkg-config --exists gtest libhwy fmt CLI11 nlohmann_json libxxhash zlib 2>/dev/null; then
  [ -d .gpu-bundle ] || { echo "packages are missing here, and there is no .gpu-bundle: make it with tools/gpu_bundle.sh" >&2; exit 1; }
  root=$PWD/.gpu-bundle/root
  chmod +x .gpu-bundle/pkg-config "$root/usr/bin/pkgconf"
  export PKG_CONFIG=$PWD/.gpu-bundle/pkg-config
  export LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:${LIBRARY_PATH:-} LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}
  export CPATH=$root/usr/include:${CPATH:-}
  setup+=(-Dmpi=disabled -Dhwloc=disabled)
  data=$root/usr/share/datasets/fashion-mnist
fi
# cuDNN and cuBLAS may have come with Python's packages, which have no names to link with.
python_libraries=$(python3 -c 'import nvidia; print("\n".join(nvidia.__path__))' 2>/dev/null)
if [ -n "$python_libraries" ] && ! ldconfig -p | grep -q libcudnn.so; then
  links=$out/libraries
  mkdir -p "$links/include" "$links/lib"
  find $python_libraries -name 'cudnn*.h' -exec ln -sf {} "$links/include/" \;
  while IFS= read -r library; do
    name=$(basename "$library")
    ln -sf "$library" "$links/lib/$name"
    ln -sf "$library" "$links/lib/${name%%.so.*}.so"
  done < <(find $python_libraries -name 'libcudnn*.so.*' -o -name 'libcublas*.so.*')
  export CPATH=${CPATH:-}:$links/include LIBRARY_PATH=${LIBRARY_PATH:-}:$links/lib LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$links/lib
fi

[ -f build-gpu/build.ninja ] || step setup 120 "${setup[@]}"
step build 400 ninja -C build-gpu
tests=build-gpu/tests
step topology 60 build-gpu/tools/rondo-topo --device cuda --ranks 4
step groups 240 $tests/test_gpu_device_group
step processes 240 $tests/test_gpu_device_processes
step gradients 120 $tests/test_gpu_device_gradients

perf=build-gpu/bench/rondo-perf
for ranks in 2 4; do
  step "perf $ranks ranks" 120 $perf --device cuda --ranks $ranks -b 1KiB -e 256MiB -f 8 --algo ring,one_shot,naive,copy --json "$out/perf_$ranks.json"
  step "perf $ranks ranks 256 MiB" 60 $perf --device cuda --ranks $ranks -b 256MiB -e 256MiB -n 20 --algo ring,copy --json "$out/large_$ranks.json"
done
# Without MPS, processes take turns on a device: this shows that they get through, not how fast.
step "perf 2 processes" 60 $perf --device cuda --processes 2 -b 1KiB -e 256KiB -f 16 -n 3 -w 1 --algo ring,one_shot --json "$out/perf_processes.json"
step "perf bf16" 60 $perf --device cuda --ranks 2 -d bf16 -b 64MiB -e 64MiB -n 20 --algo ring,copy --json "$out/perf_bf16.json"

if [ -x $tests/test_gpu_lenet ]; then
  step "lenet agreement" 100 $tests/test_gpu_lenet
  lenet=(build-gpu/examples/lenet/rondo-lenet --device cuda --data "$data")
  step "lenet 1 rank alone" 60 "${lenet[@]}" --ranks 1 --algo none --history "$out/lenet_alone.json"
  step "lenet 1 rank" 60 "${lenet[@]}" --ranks 1 --history "$out/lenet_1.json"
  step "lenet 2 ranks" 60 "${lenet[@]}" --ranks 2 --history "$out/lenet_2.json"
  step "lenet 2 processes" 90 "${lenet[@]}" --processes 2 --history "$out/lenet_processes.json"
  step "lenet naive" 60 "${lenet[@]}" --ranks 2 --algo naive --epochs 3 --history "$out/lenet_naive.json"
  python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null &&
    step "lenet by PyTorch" 120 bash -c 'set -o pipefail; python3 bench/peers/lenet_ddp.py --ranks 1 --device cuda --epochs 5 --data "$1" | tee "$2"' _ "$data" "$out/lenet_torch.txt"
fi

# Last, and briefly: where a tool starts one kernel after the other, ranks wait for each other in vain.
few='DeviceGroup.TypedCallsAndManyChannels:DeviceGroup.ACapturedCallIsReplayed:Ranks/DeviceGroups.EveryCollectiveAndCount/0'
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck synccheck; do
    RONDO_TIMEOUT=5 step "sanitizer $tool" 40 compute-sanitizer --tool $tool --error-exitcode 9 $tests/test_gpu_device_group --gtest_filter="$few"
  done
else
  echo "compute-sanitizer is not here: memcheck, racecheck and synccheck were not run"
fi

step summary 60 python3 tools/gpu_summary.py "$out"
echo
echo "${#failed[@]} steps failed${failed:+: ${failed[*]}}"
exit ${#failed[@]}
