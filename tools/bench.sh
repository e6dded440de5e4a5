#!/usr/bin/env bash
# Measures Rondo beside its peers, on one host and on test hosts, and writes the tables of bench/results/tables.md and docs, and
# pictures from what was measured.
#
#   tools/bench.sh [one] [busy] [direct] [types] [many] [choice] [gradients] [parts] [sim] [exchange] [report]
#
# All of them unless some are named.
#
# one: on this host, against Open MPI (its default and each of its tuned algorithms), MPICH and Gloo. busy: on cores that other
# programs use, too. direct: with registered memory, with ordinary memory of many ranks, and on test hosts of several
# ranks. types: 16-bit floats. many: on test hosts, which needs root. choice: how near `auto` is to the best there. gradients: how much of their communication hides
# behind backprop, on test hosts and on this one. parts: kernels, FIFOs and small calls. sim: what rondo-sim says of many
# ranks, and how far it is right on test hosts, which needs root. exchange: parameter servers beside the ring, on test
# hosts, which needs root. report: only writes tables and pictures, from bench/results/*.json.
# Installs missing packages.
# Nothing else should run on the machine meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
sections=("${@:-all}")
for section in "${sections[@]}"; do
  case $section in all | one | busy | direct | types | many | choice | gradients | parts | sim | exchange | report) ;; *) sed -n '2,17s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
done
wants() { [[ " ${sections[*]} " =~ \ (all|$1)\  ]]; }
results=$PWD/bench/results
build="build-bench"
mkdir -p "$results"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# measure NAME COMMAND...: runs it with --json, and keeps the command and the date beside the rows.
measure() {
  local name=$1 json
  shift
  json=$(mktemp)
  rm -f "$results/$name.json"  # so that a failure leaves no earlier result
  echo "== $name: $*"
  if ! "$@" --json "$json"; then
    echo "bench: $name failed" >&2
    rm -f "$json"
    return 1
  fi
  COMMAND="$*" REPOSITORY=$PWD python3 - "$json" "$results/$name.json" <<'KEEP'
import datetime, json, os, sys
run = json.load(open(sys.argv[1]))
run["command"] = os.environ["COMMAND"].replace(os.environ["REPOSITORY"] + "/", "")
run["date"] = datetime.date.today().isoformat()
run.setdefault("config", {})
run.setdefault("machine", {"cores": os.cpu_count()})["processor"] = next(
    (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
run["machine"].pop("host", None)
with open(sys.argv[2], "w") as out:
    json.dump(run, out, indent=1)
    out.write("\n")
KEEP
  rm -f "$json"
}

build_all() {
  tools/setup.sh --bench
  tools/build.sh $build -Dcuda=disabled -Dmpi=enabled -Dhwloc=enabled -Dbenchmarks=enabled -Dtests=disabled -Dexamples=enabled
  perf=$PWD/$build/bench/rondo-perf
  mpich_perf=
  if command -v mpirun.mpich >/dev/null && pkg-config --exists mpich; then
    tools/build.sh $build-mpich -Dcuda=disabled -Dmpi=enabled -Dmpi_name=mpich -Dhwloc=enabled -Dbenchmarks=enabled -Dtests=disabled -Dexamples=disabled
    mpich_perf=$PWD/$build-mpich/bench/rondo-perf
  fi
}

one_host() {
  local gloo=""
  if "$perf" --help | grep -q gloo; then gloo=,gloo; fi
  measure one_2 mpirun -n 2 "$perf" --algo "auto,naive,mpi$gloo,copy" -b 4 -e 64MiB -f 4
  # For the cost model.
  measure one_4_model mpirun -n 4 --oversubscribe "$perf" --algo ring,naive,one_shot -b 4 -e 16MiB -f 4
  measure one_2_model mpirun -n 2 "$perf" --algo ring,naive,one_shot -b 4 -e 16MiB -f 4
  local algorithm
  for algorithm in 1 2 3 4 5 6; do
    measure "one_2_tuned_$algorithm" mpirun -n 2 --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm "$algorithm" \
      "$perf" --algo auto,mpi -b 4 -e 64MiB -f 4 || true
  done
  if [ -n "$mpich_perf" ]; then measure one_2_mpich mpirun.mpich -n 2 "$mpich_perf" --algo auto,mpi -b 4 -e 64MiB -f 4; fi
  local ranks
  for ranks in 4 8; do
    measure "one_$ranks" mpirun -n $ranks --oversubscribe --mca mpi_yield_when_idle 1 "$perf" --algo auto,mpi -b 4 -e 16MiB -f 4
  done
}

direct() {
  measure direct_2 mpirun -n 2 "$perf" --registered --fresh --use --algo auto,ring,mpi,copy -b 4KiB -e 64MiB -f 4
  local crowd=(--oversubscribe --mca mpi_yield_when_idle 1) ranks type layout
  for ranks in 4 8; do
    measure direct_$ranks mpirun -n $ranks "${crowd[@]}" "$perf" --registered --fresh --use --algo auto,ring,mpi -b 4KiB -e 16MiB -f 4
  done
  for ranks in 3 4 8; do
    measure ordinary_$ranks mpirun -n $ranks "${crowd[@]}" "$perf" --fresh --algo auto,ring,mpi -b 16KiB -e 1MiB -f 4
  done
  for type in f32 bf16 f16; do measure direct_2_$type "$perf" --ranks 2 --fresh --algo direct -d $type -b 64KiB -e 64MiB -f 4; done
  if [ "$(id -u)" != 0 ]; then
    echo "bench: test hosts need root; left out" >&2
    return
  fi
  for layout in 2x2 2x4 4x2; do
    measure several_$layout tools/test_hosts.sh --hosts ${layout%x*} --ranks-per-host ${layout#*x} -- "$perf" --algo auto,ring,mpi -b 8MiB -e 64MiB -f 8 -n 5 -w 1
    measure several_${layout}_small tools/test_hosts.sh --hosts ${layout%x*} --ranks-per-host ${layout#*x} -- "$perf" --algo auto,mpi -b 4 -e 64KiB -f 4
  done
}

choice() { measure choice tools/check_choice.py $build; }

busy() { measure busy tools/measure_busy.py $build; }

types() {
  local type
  for type in f32 bf16 f16; do measure "one_2_$type" "$perf" --ranks 2 --algo auto -d $type -b 4 -e 64MiB -f 4; done
}

many_hosts() {
  if [ "$(id -u)" != 0 ]; then
    echo "bench: test hosts need root; left out" >&2
    return
  fi
  local wire
  wire=$(tools/test_hosts.sh --hosts 2 -- tools/wire_rate.sh)
  echo "$wire" > "$results/wire.json"
  local slot
  for slot in 8 16 32 64 128; do
    measure "many_8_slots_$slot" tools/test_hosts.sh --hosts 8 -- "$perf" --algo ring --slot-bytes $((slot * 1024)) -b 8MiB -e 8MiB -n 5 -w 1
  done
  local hosts
  for hosts in 2 4 8; do
    measure "many_$hosts" tools/test_hosts.sh --hosts $hosts -- "$perf" --algo ring,naive,mpi -b 8MiB -e 8MiB -n 10
    measure "many_${hosts}_large" tools/test_hosts.sh --hosts $hosts -- "$perf" --algo ring,mpi -b 64MiB -e 64MiB -n 3 -w 1
    measure "many_${hosts}_small" tools/test_hosts.sh --hosts $hosts -- "$perf" --algo auto,mpi -b 4 -e 1MiB -f 4
    measure "many_${hosts}_model" tools/test_hosts.sh --hosts $hosts -- "$perf" --algo ring,naive,recursive_doubling -b 4 -e 1MiB -f 16
  done
  measure many_2x2 tools/test_hosts.sh --hosts 2 --ranks-per-host 2 -- "$perf" --algo ring,mpi -b 8MiB -e 8MiB -n 10
}

gradients() {
  local overlap=$PWD/$build/bench/rondo-overlap trainer=$PWD/$build/examples/systems/rondo-systems
  measure overlap_one_host mpirun -n 2 "$trainer" --bucket-kib 0 --measure-overlap 400
  if [ "$(id -u)" != 0 ]; then
    echo "bench: test hosts need root; left out" >&2
    return
  fi
  measure overlap_two_hosts tools/test_hosts.sh --hosts 2 --pin --rate 25mbit -- "$trainer" --bucket-kib 0 --measure-overlap 40 --batch-size 4096
  measure overlap_two_hosts_256 tools/test_hosts.sh --hosts 2 --pin --rate 300mbit -- "$trainer" --bucket-kib 0 --measure-overlap 200
  measure overlap_resnet18_two_hosts tools/test_hosts.sh --hosts 2 -- "$trainer" --model resnet18 --measure-overlap 5 --train-samples 512 --test-samples 100 --batch-size 64
  local hosts
  for hosts in 2 4 8; do
    measure overlap_resnet50_$hosts tools/test_hosts.sh --hosts $hosts -- "$overlap" --bucket-kib 0,64,256,1024,4096,16384 -n 5
  done
}

parts() {
  "$PWD/$build/bench/rondo-parts" --benchmark_min_time=0.05 --benchmark_format=console --benchmark_out_format=json \
    --benchmark_out="$results/parts.json"
  python3 - "$results/parts.json" <<'CLEAN'
import json, sys
run = json.load(open(sys.argv[1]))
for key in ("host_name", "executable", "load_avg"):
    run["context"].pop(key, None)
with open(sys.argv[1], "w") as out:
    json.dump(run, out, indent=1)
    out.write("\n")
CLEAN
}

sim() {
  # 25 Gbit/s for eight ranks on each host.
  local program=$PWD/$build/bench/rondo-sim
  local network=(--ranks "8,32,128,512,2048,8192,32768,131072" --ranks-per-host 8 --link-mbit 25000 --latency-us 10 --jitter-us 3)
  measure sim_ranks "$program" "${network[@]}" --kib 64,16384
  measure sim_ranks_model "$program" "${network[@]}" --model resnet50 --compute-ms 100
  if [ "$(id -u)" != 0 ]; then
    echo "bench: test hosts need root; left out" >&2
    return
  fi
  for rate in 1gbit 400mbit 200mbit; do measure sim_validation_$rate tools/validate_sim.py $build --rates $rate; done
  for cases in apart far servers traced; do measure sim_validation_$cases tools/validate_sim.py $build --cases $cases; done
}

exchange() { measure exchange tools/measure_exchange.py $build; }

if wants one || wants busy || wants direct || wants types || wants many || wants choice || wants gradients || wants parts || wants sim || wants exchange; then build_all; fi
if wants one; then one_host; fi
if wants busy; then busy; fi
if wants direct; then direct; fi
if wants types; then types; fi
if wants many; then many_hosts; fi
if wants choice; then choice; fi
if wants gradients; then gradients; fi
if wants parts; then parts; fi
if wants sim; then sim; fi
if wants exchange; then exchange; fi
if wants report; then
  /usr/bin/python3 tools/bench_report.py
  /usr/bin/python3 tools/scaling_report.py
fi
