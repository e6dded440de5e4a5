#!/usr/bin/env bash
# The MPI tests on several test hosts: run.sh REPOSITORY KILLED_RANK TEST_PROGRAM... Exit code 77 (skipped), with the
# reason, where test hosts cannot be made.
set -uo pipefail
output=$(mktemp)
tuning=$(mktemp)
told_folder=$(mktemp -d)
trap 'rm -rf "$output" "$tuning" "$told_folder"' EXIT
repository=$1
killed_rank=$2
shift 2

# Runs a command; shows what it said, without the tests that passed; exits if it failed.
require() {
  "$@" >"$output" 2>&1
  local code=$?
  if [ $code = 77 ]; then
    echo "skipped: $(cat "$output")"
    exit 77
  fi
  grep -vE '\[ (RUN|      OK) ' "$output"
  [ $code = 0 ] || exit $code
}

# One rank on each host; two, numbered host by host; two, numbered alternately, so that the ring is 0 2 1 3.
for layout in "1 slot" "2 slot" "2 node"; do
  read -r ranks_per_host order <<<"$layout"
  # The matrix of mismatches takes a minute: it runs only in the last layout.
  filter="-Mpi.EveryMismatch*"
  if [ "$order" = node ]; then filter="*"; fi
  for program in "$@"; do
    require timeout 250 "$repository/tools/test_hosts.sh" --hosts 2 --ranks-per-host "$ranks_per_host" --map-by "$order" -- "$program" "--gtest_filter=$filter"
  done
done

# A killed rank is an error of all others, which names it; except of a rank that Open MPI 4 does not let return from MPI_Testsome.
# Without recovery mpirun would end the others before they have told their error.
if mpirun --version | grep -q "(Open MPI) 4"; then
  for hosts in 2 4; do
    # mpirun itself crashes now and then when a rank is killed: then the next try counts. Ranks of the former one may live on and
    # tell their error later, so each try has a file of its own.
    for ((try = 1; try <= 5; ++try)); do
      told=$told_folder/$hosts-$try
      : >"$told"
      OMPI_MCA_orte_enable_recovery=1 timeout 200 "$repository/tools/test_hosts.sh" --hosts "$hosts" --ranks-per-host 1 -- "$killed_rank" "$told" >"$output" 2>&1
      grep -aqE "(Segmentation fault|Bus error|Aborted) .*ip netns exec" "$output" || break
      echo "mpirun has crashed in try $try"
    done
    found=$(grep -acE "^PeerError: rank [0-9]*: .*rank 1 \(process [0-9]*\) ended" "$told")
    kept=$(grep -ac "^kept by MPI: " "$told")
    echo "$hosts hosts: $found ranks have named the killed one, and $kept were kept by MPI"
    [ "$((found + kept))" = $((hosts - 1)) ] || { cat "$told" "$output"; exit 1; }
  done
else
  # This mpirun, which is not that of Open MPI 4, ends all ranks at once, before they can tell their error.
  timeout 100 "$repository/tools/test_hosts.sh" --hosts 2 --ranks-per-host 1 -- "$killed_rank" "$told_folder/told" >"$output" 2>&1
  code=$?
  echo "2 hosts: the job of a killed rank has ended with exit code $code"
  if [ "$code" = 0 ] || [ "$code" = 124 ]; then
    cat "$output"
    exit 1
  fi
fi

# More hosts, with different numbers of ranks: only names, by which Rondo tells hosts apart. By the model, and each way in which
# leaders exchange few bytes; with halving_doubling, rails carry many bytes by it, too.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for names in "a a a b" "a b b c d d a"; do
  require timeout 250 mpirun -n "$(wc -w <<<"$names")" --oversubscribe --mca mpi_yield_when_idle 1 \
    "$repository/tests/hosts/named.sh" "$names" "$1" '--gtest_filter=Mpi.Hierarchical*:Mpi.Halving*:Mpi.Tree:Mpi.UserReductions:Mpi.RareTypes'
  for algorithm in naive recursive_doubling halving_doubling; do
    printf 'hosts 2 0 hierarchical\nmpi 2 0 %s\n' "$algorithm" >"$tuning"
    RONDO_TUNING=$tuning require timeout 250 mpirun -n "$(wc -w <<<"$names")" --oversubscribe --mca mpi_yield_when_idle 1 \
      "$repository/tests/hosts/named.sh" "$names" "$1" '--gtest_filter=Mpi.Hierarchical*:Mpi.NoRankLeaves*:Mpi.Split*'
  done
done
