#!/usr/bin/env bash
# The MPI tests on two test hosts: run.sh REPOSITORY TEST_PROGRAM... Exit code 77 (skipped), with the
# reason, where test hosts cannot be made.
set -uo pipefail
output=$(mktemp)
trap 'rm -f "$output"' EXIT
repository=$1
shift
# One rank on each host; two, numbered host by host; two, numbered alternately, so that the ring is 0 2 1 3.
for layout in "1 slot" "2 slot" "2 node"; do
  read -r ranks_per_host order <<<"$layout"
  # The matrix of mismatches takes a minute: it runs only in the last layout.
  filter=-Mpi.EveryMismatch*
  if [ "$order" = node ]; then filter=*; fi
  for program in "$@"; do
    timeout 250 "$repository/tools/test_hosts.sh" --hosts 2 --ranks-per-host "$ranks_per_host" --map-by "$order" -- "$program" "--gtest_filter=$filter" >"$output" 2>&1
    code=$?
    if [ $code = 77 ]; then
      echo "skipped: $(cat "$output")"
      exit 77
    fi
    grep -vE '\[ (RUN|      OK) ' "$output"
    [ $code = 0 ] || exit $code
  done
done
