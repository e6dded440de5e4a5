#!/usr/bin/env bash
# Runs what needs a GPU, in phases: tools/gpu_check.sh PHASE [FOLDER]
#
#   build      sets up and builds what the phases run, and goes on after failures; every other phase builds first too
#   tests      every CUDA test with 1 to 8 ranks on one device, as threads
#   processes  the same with forked processes, and gradients
#   sanitize   compute-sanitizer's tools on a small set
#   perf       rondo-perf on device memory: all algorithms, then a sweep of slots, their size and threads
#   train      the trainer against itself with other ranks and algorithms, and against PyTorch
#   resnet18   ResNet-18 on all of Fashion-MNIST, as the documents train it, on 1 and 2 ranks
#   all        all phases, one after the other
#
# Each step ends at the latest RONDO_GPU_CHECK_SECONDS (530) minus 15 after the script's start. Steps without time left
# are listed; the same command again runs them and the failed ones, but none that has passed with the same sources.
#
# Each step's output and exit code are appended to files in FOLDER (gpu-check); an earlier result of the same name is
# moved to FOLDER/earlier. After each step, FOLDER is packed into FOLDER.tar.gz. Needs nvcc, g++, Meson and Ninja, and,
# where packages are missing, the folder .gpu-bundle, which tools/gpu_bundle.sh makes on another machine. Exit code:
# how many steps failed or were not run.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
phase=${1:-}
case $phase in
  build | tests | processes | sanitize | perf | train | resnet18 | all) ;;
  *) sed -n '2,19s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
out=$(realpath -m "${2:-gpu-check}")
mkdir -p "$out"
exec 3>&1
exec > >(tee -a "$out/log.txt") 2>&1
log_writer=$!
sources=$(find bench cuda examples include src tests tools meson.build meson_options.txt \( -name '*.[ch]pp' -o -name '*.cu' -o -name '*.py' -o -name '*.map' -o -name 'meson*' -o -name gpu_check.sh \) -type f | LC_ALL=C sort | xargs cat | sha1sum | cut -c1-12)
printf '\n#### %s, %s, sources %s\n' "$phase" "$(date -u +%FT%TZ)" "$sources"

PATH=$PATH:/usr/local/cuda/bin
export CUDA_DEVICE_MAX_CONNECTIONS=32 RONDO_TIMEOUT=60
most=${RONDO_GPU_CHECK_SECONDS:-530}
for_the_end=15
failed=()
pack() {
  timeout 20 tar -czf "$out.tar.gz.part" --exclude=libraries -C "$(dirname "$out")" "$(basename "$out")" && mv "$out.tar.gz.part" "$out.tar.gz"
}
# A result that will be written again is kept under another name.
keep_earlier() {
  for file in "$@"; do
    if [[ $file != "$out"/* ]] || [ ! -e "$file" ]; then continue; fi
    mkdir -p "$out/earlier"
    mv "$file" "$out/earlier/$(date -u +%Y%m%dT%H%M%S)_$(basename "$file")"
  done
}
# run NAME SECONDS COMMAND...: runs the command for at most SECONDS or the time left, and records how it ended.
run() {
  local name=$1 limit=$2 start=$SECONDS code=0
  local left=$((most - for_the_end - SECONDS))
  shift 2
  if [ $left -lt 10 ]; then
    failed+=("$name (no time left)")
    return 0
  fi
  printf '\n== %s: %s\n' "$name" "$*"
  keep_earlier "$@"
  timeout --kill-after=5 $((limit < left ? limit : left)) "$@" 3>&- || code=$?
  printf '{"step": "%s", "code": %d, "seconds": %d, "sources": "%s"}\n' "$name" "$code" $((SECONDS - start)) "$sources" >>"$out/steps.jsonl"
  [ $code = 0 ] || { failed+=("$name"); echo "-- $name failed with $code"; }
  pack
}
# Whether the program among the arguments is up to date with the sources.
is_built() {
  local word
  for word in "$@"; do
    if [[ $word == build-gpu/* ]]; then
      [[ $(ninja -C build-gpu -n "${word#build-gpu/}") == *"no work to do"* ]]
      return
    fi
  done
}
# Like run, but skips a step that has passed with these sources, and refuses a program that is out of date.
step() {
  if grep -qsF "{\"step\": \"$1\", \"code\": 0, " <(grep -sF "\"$sources\"" "$out/steps.jsonl"); then
    echo "== $1: has passed with these sources"
    return 0
  fi
  if ! is_built "$@"; then
    failed+=("$1 (not built)")
    return 0
  fi
  run "$@"
}
finish() {
  timeout 20 python3 tools/gpu_summary.py "$out" || failed+=(summary)
  echo
  echo "${#failed[@]} steps failed or were not run"
  [ ${#failed[@]} = 0 ] || printf '  %s\n' "${failed[@]}"
  exec >&3 2>&3
  # The log writer ends when no process holds its input open; a process that hangs may still do so.
  for _ in {1..30}; do
    kill -0 "$log_writer" 2>/dev/null || break
    sleep 0.1
  done
  kill "$log_writer" 2>/dev/null
  pack
  exit ${#failed[@]}
}

data=/usr/share/datasets/fashion-mnist
setup=(meson setup build-gpu -Dcuda=enabled -Dtests=enabled -Dbenchmarks=enabled -Dexamples=auto)
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
# cuDNN and cuBLAS may come from Python packages, whose files lack the names (libX.so) that the linker needs.
python_libraries=$(python3 -c 'import nvidia; print("\n".join(nvidia.__path__))' 2>/dev/null)
system_libraries=$(ldconfig -p)
if [ -n "$python_libraries" ] && [[ $system_libraries != *libcudnn.so* ]]; then
  links=$out/libraries
  mkdir -p "$links/include" "$links/lib"
  find $python_libraries \( -name 'cudnn*.h' -o -name 'cublas*.h' \) -exec ln -sf {} "$links/include/" \;
  while IFS= read -r library; do
    name=$(basename "$library")
    ln -sf "$library" "$links/lib/$name"
    ln -sf "$library" "$links/lib/${name%%.so.*}.so"
  done < <(find $python_libraries -name 'libcudnn*.so.*' -o -name 'libcublas*.so.*')
  export CPATH=${CPATH:-}:$links/include LIBRARY_PATH=${LIBRARY_PATH:-}:$links/lib LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$links/lib
fi

tests=build-gpu/tests
perf=build-gpu/bench/rondo-perf
trainer=build-gpu/examples/lenet/rondo-lenet
build() {
  timeout 20 nvidia-smi --query-gpu=name,driver_version,memory.total,pci.bus_id --format=csv,noheader >"$out/devices.txt"
  cat "$out/devices.txt"
  nvcc --version | tail -2
  g++ --version | head -1
  timeout 20 nvidia-smi topo -m 2>/dev/null
  git log -1 --format='commit %h' 2>/dev/null
  [ -f build-gpu/build.ninja ] || run setup 120 "${setup[@]}"
  local target targets=("$tests/test_gpu_device_group" "$tests/test_gpu_device_direct" "$tests/test_gpu_device_exchanges"
    "$tests/test_gpu_device_processes" "$tests/test_gpu_device_gradients"
    build-gpu/tools/rondo-topo "$perf")
  known_targets=$(ninja -C build-gpu -t targets all)
  for target in "$trainer" $tests/test_gpu_lenet; do
    if [[ $known_targets == *"${target#build-gpu/}:"* ]]; then targets+=("$target"); fi
  done
  run build 480 ninja -C build-gpu -j 16 -k 0 "${targets[@]#build-gpu/}"
}
run_tests() {
  step topology 60 build-gpu/tools/rondo-topo --device cuda --ranks 4
  step groups 300 $tests/test_gpu_device_group
  step direct 150 $tests/test_gpu_device_direct
  step exchanges 150 $tests/test_gpu_device_exchanges
}
run_processes() {
  step processes 300 $tests/test_gpu_device_processes
  step gradients 150 $tests/test_gpu_device_gradients
}
# Few tests and a short timeout: if a tool runs kernels one after the other, ranks wait for each other until it ends.
sanitize() {
  local few='DeviceGroup.TypedCallsAndManyChannels:DeviceGroup.ACapturedCallIsReplayed:Ranks/DeviceGroups.EveryCollectiveAndCount/0'
  command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not here: memcheck, racecheck and synccheck were not run"; return; }
  for tool in memcheck racecheck synccheck; do
    RONDO_TIMEOUT=30 step "sanitizer $tool" 150 compute-sanitizer --tool $tool --error-exitcode 9 $tests/test_gpu_device_group --gtest_filter="$few"
  done
}
measure() {
  for ranks in 2 4; do
    step "perf $ranks ranks" 60 $perf --device cuda --ranks $ranks -b 1KiB -e 256MiB -f 8 --algo ring,one_shot,direct,naive,copy --json "$out/perf_$ranks.json"
    step "perf $ranks ranks 256 MiB" 40 $perf --device cuda --ranks $ranks -b 256MiB -e 256MiB -n 20 --algo ring,direct,copy --json "$out/large_$ranks.json"
  done
  for op in send sendrecv all_to_all; do
    step "perf $op" 40 $perf --device cuda --ranks 2 --op $op -b 1KiB -e 256MiB -f 8 --json "$out/perf_$op.json"
  done
  # Without MPS, processes take turns on a device: this shows that they finish, not how fast.
  step "perf 2 processes" 40 $perf --device cuda --processes 2 --registered -b 1KiB -e 256KiB -f 16 -n 3 -w 1 --algo ring,one_shot,direct --json "$out/perf_processes.json"
  step "perf bf16" 30 $perf --device cuda --ranks 2 -d bf16 -b 64MiB -e 64MiB -n 20 --algo ring,direct,copy --json "$out/perf_bf16.json"
  for slots in 2 4; do
    for kib in 32 64 128; do
      for threads in 256 512; do
        step "sweep $slots x $kib KiB, $threads threads" 15 $perf --device cuda --ranks 2 -b 1MiB -e 256MiB -f 256 -n 20 --algo ring \
          --slots $slots --slot-bytes ${kib}KiB --block-threads $threads --json "$out/sweep_${slots}_${kib}_$threads.json"
      done
    done
  done
}
train() {
  [[ $known_targets == *examples/lenet/rondo-lenet:* ]] || { echo "cuDNN or cuBLAS is not here: no trainer"; return; }
  step "lenet agreement" 100 $tests/test_gpu_lenet
  local lenet=("$trainer" --device cuda --data "$data")
  step "lenet 1 rank alone" 50 "${lenet[@]}" --ranks 1 --algo none --history "$out/lenet_alone.json"
  step "lenet 1 rank" 50 "${lenet[@]}" --ranks 1 --history "$out/lenet_1.json"
  # One call after the backward pass: if this step passes and the next one hangs, the reducer's stream shares a queue.
  step "lenet 2 ranks, no overlap" 50 "${lenet[@]}" --ranks 2 --no-overlap --history "$out/lenet_2_no_overlap.json"
  step "lenet 2 ranks" 50 "${lenet[@]}" --ranks 2 --history "$out/lenet_2.json"
  step "lenet 2 processes" 60 "${lenet[@]}" --processes 2 --epochs 2 --history "$out/lenet_processes.json"
  step "lenet naive" 40 "${lenet[@]}" --ranks 2 --algo naive --epochs 3 --history "$out/lenet_naive.json"
  timeout 30 python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null &&
    step "lenet by PyTorch" 90 bash -c 'set -o pipefail; python3 bench/peers/lenet_ddp.py --ranks 1 --device cuda --epochs 5 --data "$1" | tee "$2"' _ "$data" "$out/lenet_torch.txt"
}
train_resnet18() {
  [[ $known_targets == *examples/lenet/rondo-lenet:* ]] || { echo "cuDNN or cuBLAS is not here: no trainer"; return; }
  local resnet18=("$trainer" --device cuda --model resnet18 --data "$data")
  step "resnet18 2 ranks, one epoch" 90 "${resnet18[@]}" --ranks 2 --batch-norm all --epochs 1
  step "resnet18 1 rank" 250 "${resnet18[@]}" --ranks 1 --lr 0.1 --history "$out/resnet18_1.json"
  step "resnet18 2 ranks" 250 "${resnet18[@]}" --ranks 2 --batch-size 512 --lr 0.2 --history "$out/resnet18_2.json"
}

build
case $phase in
  tests) run_tests ;;
  processes) run_processes ;;
  sanitize) sanitize ;;
  perf) measure ;;
  train) train ;;
  resnet18) train_resnet18 ;;
  all) run_tests; run_processes; sanitize; measure; train; train_resnet18 ;;
esac
finish
