#!/usr/bin/env bash
# Runs what needs a GPU, in phases: tools/gpu_check.sh PHASE [FOLDER]
#
#   build      sets up and builds what the phases run, and goes on after failures; every other phase builds first too
#   probe      a minute: the device, a handful of calls by each algorithm, by threads and by processes
#   speed      rondo-perf with two ranks
#   tests      every CUDA test with 1 to 8 ranks on one device, as threads
#   train      the trainer against itself with other ranks and algorithms, and against PyTorch
#   beside     all-reduces beside matrix products, for several numbers of channels
#   processes  the tests with forked processes, and gradients
#   perf       rondo-perf with four ranks, messages, direct over channels and threads, slots and their size
#   sanitize   compute-sanitizer's tools on a small set
#   resnet18   ResNet-18 on all of Fashion-MNIST, as the documents train it, on 1 and 2 ranks
#   all        all phases in this order; if the probe fails, no other
#
# Each step ends at the latest RONDO_GPU_CHECK_SECONDS (530) minus 15 after the script's start. Steps without time left
# are listed; the same command again runs them and the failed ones, but none that has passed with the same sources.
#
# Each step's output and exit code are appended to files in FOLDER (gpu-check); an earlier result of the same name is
# moved to FOLDER/earlier. After each step, FOLDER is packed into FOLDER.tar.gz. Needs nvcc, g++, Meson and Ninja, and,
# where packages are missing, the folder .gpu-bundle, which tools/gpu_bundle.sh makes on another machine. A bundle with
# programs of the same sources is run as it is, without a build. Exit code: how many steps failed or were not run.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
phase=${1:-}
phases=(build probe speed tests train beside processes perf sanitize resnet18 all)
if [[ -z $phase || " ${phases[*]} " != *" $phase "* ]]; then
  sed -n '2,26s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
source tools/gpu_programs.sh
out=$(realpath -m "${2:-gpu-check}")
mkdir -p "$out"
exec 3>&1
exec > >(tee -a "$out/log.txt") 2>&1
log_writer=$!
sources=$(gpu_sources)
printf '\n#### %s, %s, sources %s\n' "$phase" "$(date -u +%FT%TZ)" "$sources"

PATH=$PATH:/usr/local/cuda/bin
# A kernel that is loaded at its first launch may wait for the kernels that run, which wait for it.
export CUDA_DEVICE_MAX_CONNECTIONS=32 CUDA_MODULE_LOADING=EAGER RONDO_TIMEOUT=10
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
  [ "$programs" = build-gpu ] || return 0
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
programs=build-gpu
if [ "$(cat .gpu-bundle/programs.sources 2>/dev/null)" = "$sources" ]; then
  programs=$PWD/.gpu-bundle/programs
  rm -rf "$programs"
  python3 -m tarfile --extract .gpu-bundle/programs.tar.xz "$programs"
  export LD_LIBRARY_PATH=$programs/libraries:${LD_LIBRARY_PATH:-}
  data=$PWD/.gpu-bundle/root$data
elif ! pkg-config --exists gtest libhwy fmt CLI11 nlohmann_json libxxhash zlib 2>/dev/null || [ ! -e /usr/include/asio.hpp ]; then
  [ -e .gpu-bundle/pkg-config ] || { echo "packages are missing here, and .gpu-bundle has neither them nor programs of these sources ($sources): make it with tools/gpu_bundle.sh" >&2; exit 1; }
  root=$PWD/.gpu-bundle/root
  chmod +x .gpu-bundle/pkg-config "$root/usr/bin/pkgconf"
  export PKG_CONFIG=$PWD/.gpu-bundle/pkg-config
  export LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:${LIBRARY_PATH:-} LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}
  export CPATH=$root/usr/include:${CPATH:-}
  gpu_setup+=(-Dmpi=disabled -Dhwloc=disabled)
  data=$root/usr/share/datasets/fashion-mnist
fi
# cuDNN and cuBLAS may come from Python packages, whose files lack the names (libX.so) that the linker needs.
python_libraries=$(python3 -c 'import nvidia; print("\n".join(nvidia.__path__))' 2>/dev/null)
system_libraries=$(ldconfig -p)
if [ -n "$python_libraries" ] && [[ $system_libraries != *libcudnn.so* ]]; then
  links=$out/libraries
  mkdir -p "$links/include" "$links/lib"
  # shellcheck disable=SC2086
  find $python_libraries \( -name 'cudnn*.h' -o -name 'cublas*.h' \) -exec ln -sf {} "$links/include/" \;
  while IFS= read -r library; do
    name=$(basename "$library")
    ln -sf "$library" "$links/lib/$name"
    ln -sf "$library" "$links/lib/${name%%.so.*}.so"
  done < <(find $python_libraries -name 'libcudnn*.so.*' -o -name 'libcublas*.so.*')
  export CPATH=${CPATH:-}:$links/include LIBRARY_PATH=${LIBRARY_PATH:-}:$links/lib LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$links/lib
fi

tests=$programs/tests
perf=$programs/bench/rondo-perf
beside=$programs/bench/rondo-beside
trainer=$programs/examples/lenet/rondo-lenet
build() {
  timeout 20 nvidia-smi --query-gpu=name,driver_version,memory.total,pci.bus_id --format=csv,noheader >"$out/devices.txt"
  cat "$out/devices.txt"
  nvcc --version | tail -2
  git log -1 --format='commit %h' 2>/dev/null
  [ "$programs" = build-gpu ] || return
  g++ --version | head -1
  timeout 20 nvidia-smi topo -m 2>/dev/null
  [ -f build-gpu/build.ninja ] || run setup 120 meson setup build-gpu "${gpu_setup[@]}"
  gpu_targets build-gpu
  run build 480 ninja -C build-gpu -j 16 -k 0 "${targets[@]}"
}
# From the least that may fail to a little of everything.
probe() {
  local few=(--device cuda -n 20 -w 2 -f 16) algo
  step "probe topology" 20 "$programs/tools/rondo-topo" --device cuda --ranks 2
  step "probe barrier" 20 "$tests"/test_gpu_device_group --gtest_filter='DeviceGroup.ABarrierOfTwoThreads'
  step "probe barriers of processes" 20 "$tests"/test_gpu_device_processes --gtest_filter='DeviceProcess.AHundredBarriers'
  step "probe copy" 20 "$perf" "${few[@]}" --ranks 1 -b 1MiB -e 256MiB --algo copy
  for algo in one_shot direct ring naive; do
    step "probe $algo" 20 "$perf" "${few[@]}" --ranks 2 -b 4 -e 64KiB --algo $algo
  done
  step "probe large" 20 "$perf" "${few[@]}" --ranks 2 -b 1MiB -e 256MiB --algo ring,direct
  step "probe message" 20 "$perf" "${few[@]}" --ranks 2 -b 4 -e 1MiB --op sendrecv
  step "probe test" 20 "$tests"/test_gpu_device_group --gtest_filter='DeviceGroup.TypedCallsAndManyChannels:DeviceGroup.ACapturedCallIsReplayed'
  step "probe processes" 30 "$perf" --device cuda --processes 2 --registered -b 4 -e 4KiB -f 32 -n 2 -w 1 --algo one_shot,direct,ring
}
run_tests() {
  export GTEST_FAIL_FAST=${GTEST_FAIL_FAST:-1}
  step topology 20 "$programs/tools/rondo-topo" --device cuda --ranks 4
  step direct 100 "$tests"/test_gpu_device_direct
  step exchanges 100 "$tests"/test_gpu_device_exchanges
  step groups 150 "$tests"/test_gpu_device_group
  step gradients 100 "$tests"/test_gpu_device_gradients
}
# Without MPS, processes take turns on a device: this shows that they finish, not how fast.
run_processes() {
  export RONDO_TIMEOUT=60
  step "two processes" 60 "$tests"/test_gpu_device_processes --gtest_filter='*/1:DeviceProcess.*'
  step "up to four processes" 100 "$tests"/test_gpu_device_processes --gtest_filter='*/0:*/1:*/2:*/3'
  step "up to eight processes" 300 "$tests"/test_gpu_device_processes --gtest_filter='*/4:*/5:*/6:*/7'
  step "perf 2 processes" 40 "$perf" --device cuda --processes 2 --registered -b 1KiB -e 256KiB -f 16 -n 3 -w 1 --algo ring,one_shot,direct --json "$out/perf_processes.json"
}
# Few tests and a short timeout: if a tool runs kernels one after the other, ranks wait for each other until it ends.
sanitize() {
  local subset='DeviceGroup.TypedCallsAndManyChannels:DeviceGroup.ACapturedCallIsReplayed:Ranks/DeviceGroups.EveryCollectiveAndCount/0'
  command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not here: memcheck, racecheck and synccheck were not run"; return; }
  for tool in memcheck racecheck synccheck; do
    RONDO_TIMEOUT=30 step "sanitizer $tool" 150 compute-sanitizer --tool $tool --error-exitcode 9 "$tests"/test_gpu_device_group --gtest_filter="$subset"
  done
}
measure_ranks() {
  step "perf $1 ranks" 60 "$perf" --device cuda --ranks "$1" -b 1KiB -e 256MiB -f 8 --algo ring,one_shot,direct,naive,copy --json "$out/perf_$1.json"
  step "perf $1 ranks 256 MiB" 40 "$perf" --device cuda --ranks "$1" -b 256MiB -e 256MiB -n 20 --algo ring,direct,copy --json "$out/large_$1.json"
}
measure() {
  local sizes slots kib
  measure_ranks 4
  step "one_shot to 1 MiB" 20 "$perf" --device cuda --ranks 2 -b 16KiB -e 1MiB -f 4 --algo one_shot,direct --one-shot-bytes 1MiB --json "$out/one_shot_2.json"
  step "one_shot to 1 MiB, 4 ranks" 20 "$perf" --device cuda --ranks 4 -b 16KiB -e 1MiB -f 4 --algo one_shot,direct --one-shot-bytes 1MiB --json "$out/one_shot_4.json"
  for sizes in "32 256" "64 256" "96 256" "128 256" "32 512" "64 512"; do
    # shellcheck disable=SC2086
    set -- $sizes
    step "by $1 channels of $2 threads" 15 "$perf" --device cuda --ranks 2 -b 64KiB -e 64MiB -f 32 -n 20 --algo direct,ring \
      --channels "$1" --block-threads "$2" --json "$out/channels_$1_$2.json"
  done
  for slots in 2 4; do
    for kib in 16 32 64; do
      step "ring by $slots slots of $kib KiB" 15 "$perf" --device cuda --ranks 2 -b 2MiB -e 64MiB -f 32 -n 20 --algo ring \
        --slots $slots --slot-bytes ${kib}KiB --json "$out/slots_${slots}_$kib.json"
    done
  done
  step "perf bf16" 30 "$perf" --device cuda --ranks 2 -d bf16 -b 64MiB -e 64MiB -n 20 --algo ring,direct,copy --json "$out/perf_bf16.json"
  for op in send sendrecv all_to_all; do
    step "perf $op" 40 "$perf" --device cuda --ranks 2 --op $op -b 1KiB -e 64MiB -f 16 --json "$out/perf_$op.json"
  done
}
train() {
  [ -e "$trainer" ] || { echo "cuDNN or cuBLAS is not here: no trainer"; return; }
  step "lenet agreement" 100 "$tests"/test_gpu_lenet
  local lenet=("$trainer" --device cuda --data "$data")
  step "lenet 1 rank alone" 50 "${lenet[@]}" --ranks 1 --algo none --history "$out/lenet_alone.json"
  step "lenet 1 rank" 50 "${lenet[@]}" --ranks 1 --history "$out/lenet_1.json"
  # One call after the backward pass: if this step passes and the next one hangs, the reducer's stream shares a queue.
  step "lenet 2 ranks, no overlap" 50 "${lenet[@]}" --ranks 2 --no-overlap --history "$out/lenet_2_no_overlap.json"
  step "lenet 2 ranks" 50 "${lenet[@]}" --ranks 2 --history "$out/lenet_2.json"
  step "lenet 4 ranks" 50 "${lenet[@]}" --ranks 4 --epochs 3 --history "$out/lenet_4.json"
  step "lenet 2 processes" 60 "${lenet[@]}" --processes 2 --epochs 1 --history "$out/lenet_processes.json"
  step "lenet naive" 40 "${lenet[@]}" --ranks 2 --algo naive --epochs 3 --history "$out/lenet_naive.json"
  timeout 30 python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null &&
    step "lenet by PyTorch" 90 bash -c 'set -o pipefail; python3 bench/peers/lenet_ddp.py --ranks 1 --device cuda --epochs 5 --data "$1" | tee "$2"' _ "$data" "$out/lenet_torch.txt"
}
# NAME RANKS ALGORITHM OPTIONS...
beside_step() {
  step "beside: $1" 60 bash -c 'set -o pipefail; program=$1 to=$2; shift 2; "$program" "$@" | tee "$to"' _ "$beside" "$out/beside_$1.txt" --ranks "$2" --algo "${@:3}"
}
run_beside() {
  [ -e "$beside" ] || { echo "cuBLAS is not here: no matrix products"; return; }
  beside_step direct_2 2 direct
  beside_step ring_2 2 ring
  beside_step direct_3 3 direct --channels 0,64,48,32,16
  beside_step small_2 2 direct --side 1024 --products 32 -b 4MiB
}
train_resnet18() {
  local systems=$programs/examples/systems/rondo-systems
  [ -e "$systems" ] || { echo "cuDNN or cuBLAS is not here: no trainer"; return; }
  local resnet18=("$systems" --device cuda --model resnet18 --data "$data")
  step "resnet18 2 ranks, one epoch" 90 "${resnet18[@]}" --ranks 2 --batch-norm all --epochs 1
  step "resnet18 1 rank" 250 "${resnet18[@]}" --ranks 1 --lr 0.1 --history "$out/resnet18_1.json"
  step "resnet18 2 ranks" 250 "${resnet18[@]}" --ranks 2 --batch-size 512 --lr 0.2 --history "$out/resnet18_2.json"
}

phase_of() {
  case $1 in
    probe) probe ;;
    speed) measure_ranks 2 ;;
    tests) run_tests ;;
    train) train ;;
    beside) run_beside ;;
    processes) run_processes ;;
    perf) measure ;;
    sanitize) sanitize ;;
    resnet18) train_resnet18 ;;
  esac
}

build
if [ "$phase" = all ]; then
  phase_of probe
  if [ ${#failed[@]} = 0 ]; then
    for one in "${phases[@]:2}"; do phase_of "$one"; done
  fi
else
  phase_of "$phase"
fi
finish
