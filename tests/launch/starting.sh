#!/usr/bin/env bash
# Runs the programs of docs/starting.md as it says: starting.sh RONDO_LAUNCH FROM_ENVIRONMENT FROM_STORE FROM_SOCKET THREADS RONDO_TOPO
# shellcheck disable=SC2016  # $rank is replaced below
set -uo pipefail
launch=$1
environment=$2
store=$3
socket=$4
threads=$5
topo=$6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RONDO_TIMEOUT=60
# mpirun starts nothing as root without the first two, and no more ranks than cores without the third (Open MPI 4) or the
# fourth (5).
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

fail() {
  echo "FAILED: $*"
  exit 1
}
# One process for each rank; `$rank` in the words stands for its number.
each_rank() { # WHAT SIZE COMMAND...
  local what=$1 size=$2 rank processes=()
  shift 2
  for ((rank = 0; rank < size; ++rank)); do
    "${@//\$rank/$rank}" &
    processes+=($!)
  done
  for process in "${processes[@]}"; do wait "$process" || fail "$what"; done
  echo "ok: $what"
}
# A port that nobody listens at just now.
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

"$launch" -n 4 "$environment" || fail rondo-launch
echo "ok: rondo-launch"
"$environment" || fail "started by nobody"
echo "ok: started by nobody"
master_port=$(($(port) - 1))
each_rank "torchrun's variables" 3 env RANK='$rank' WORLD_SIZE=3 MASTER_ADDR=localhost MASTER_PORT=$master_port "$environment"
each_rank "Slurm's variables" 3 env SLURM_STEP_ID=$$ SLURM_JOB_ID="$RANDOM" SLURM_PROCID='$rank' SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NUM_NODES=1 \
  SLURM_STEP_NODELIST=here "$environment"
# A program that was built with MPI must not start MPI where srun does not serve it.
each_rank "Slurm's variables, rondo-topo" 3 env SLURM_STEP_ID=$$ SLURM_JOB_ID="$RANDOM" SLURM_PROCID='$rank' SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NUM_NODES=1 \
  SLURM_STEP_NODELIST=here "$topo" >"$work/topo"
grep -q "^rank    2 host" "$work/topo" || fail "rondo-topo under srun"
each_rank "a script's variables" 2 env RONDO_RANK='$rank' RONDO_SIZE=2 RONDO_STORE="unix://$work/store" "$environment"
if command -v mpirun >/dev/null; then
  mpirun -n 3 "$environment" || fail "mpirun, without MPI in the program"
  echo "ok: mpirun, without MPI in the program"
fi
each_rank "from_store, an address" 4 "$store" "tcp://127.0.0.1:$(port)" '$rank' 4
output=$("$store" "file://$work" 0 1 2>&1)
if [[ $output == *"without libsodium"* ]]; then
  echo "not tried: from_store, a folder: built without libsodium"
else
  each_rank "from_store, a folder" 4 "$store" "file://$work" '$rank' 4
fi
each_rank "from_socket" 4 "$socket" "$work/socket" '$rank' 4
each_rank "threads" 1 "$threads"
