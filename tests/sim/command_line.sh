#!/bin/sh
# rondo-sim: answers for calls and for steps, and what it refuses.  Arguments: rondo-sim, a model, a folder.
set -eu
sim=$1 model=$2 folder=$3
mkdir -p "$folder"

"$sim" --ranks 2,100000 --kib 64 --strategies ring,server --json "$folder/calls.json" >"$folder/calls"
grep -Eq '^ +100000 ring +64 [0-9.]+$' "$folder/calls"
grep -q '"call_us"' "$folder/calls.json"

"$sim" --ranks 4 --strategies ring --jitter-us 5 --model "$model" --compute-ms 3 --steps-per-epoch 1000 --json "$folder/steps.json" >"$folder/steps"
grep -Eq '^ +4 ring +[0-9]+ +3\.[0-9]+ \([0-9.]+ \.\. [0-9.]+\) .* 3\.[0-9]+ \([0-9.]+ \.\. [0-9.]+\)$' "$folder/steps"
grep -q '"step_us"' "$folder/steps.json"
grep -Eq '^# shortest step of 4 ranks: ring, buckets of [0-9]+ KiB$' "$folder/steps"
grep -q '"jitter_us": 5.0' "$folder/steps.json"

# Calls that follow one another: as naive's overlap, each takes less.
one=$("$sim" --ranks 8 --kib 256 --strategies naive | awk '$2 == "naive" { print $4 }')
each=$("$sim" --ranks 8 --kib 256 --strategies naive --calls 8 | awk '$2 == "naive" { print $4 }')
awk -v one="$one" -v each="$each" 'BEGIN { exit !(each > 0 && each < one) }' || {
  echo "a call by naive takes $one alone and $each after others"
  exit 1
}

refuses() { # what it says, arguments
  says=$1
  shift
  if "$sim" "$@" >"$folder/refused" 2>&1; then
    echo "rondo-sim $* should have failed"
    exit 1
  fi
  grep -q -e "$says" "$folder/refused" || {
    echo "rondo-sim $* said:"
    cat "$folder/refused"
    exit 1
  }
}
refuses "there is no strategy 'rings'" --strategies rings
refuses "'/nowhere' cannot be read" --network /nowhere
refuses "'/nowhere' cannot be read" --trace /nowhere
refuses "'/nowhere' cannot be read" --model /nowhere
refuses "cannot be written" --ranks 2 --json /nowhere/file
refuses "on one" --measure "$folder/network"
refuses "excludes" --calls 8 --model "$model"
refuses "ranks" --ranks 0
for option in --link-mbit --latency-us --jitter-us --burst-kib; do refuses "$option" $option nan; done
refuses "kib" --kib 18014398509481984
refuses "is for --model or --trace" --steps-per-epoch 10
refuses "is for calls" --model "$model" --kib 64
refuses "is for the strategy 'server'" --strategies ring --servers 2
refuses "does not go with --measure" --measure "$folder/network" --ranks 8
refuses "none of this can be simulated" --ranks 8 --ranks-per-host 3
# What the library would refuse is marked, and not recommended.
"$sim" --ranks 8,16 --ranks-per-host 8 --strategies halving_doubling --kib 64 >"$folder/marked"
[ "$(grep -c 'halving_doubling \*' "$folder/marked")" = 1 ] || { cat "$folder/marked"; exit 1; }
"$sim" --ranks 256 --ranks-per-host 256 --strategies ring,recursive_doubling --model "$model" --bucket-kib 64 >"$folder/marked"
if grep -q 'shortest.*recursive' "$folder/marked" && grep -q ' \*' "$folder/marked"; then cat "$folder/marked"; exit 1; fi
