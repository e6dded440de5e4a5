# For scripts that source this file: names their steps, and says how long each took when the script ends well. (Where it fails, the
# reason is to be what it says last.)
step_names=()
step_starts=()
step() { # NAME
  step_names+=("$1")
  step_starts+=("$SECONDS")
  printf '\n== %s\n' "$1"
}
show_step_times() {
  local code=$? i end
  [ "$code" = 0 ] || return "$code"
  step_starts+=("$SECONDS")
  printf '\n%8s  %s\n' seconds step
  for ((i = 0; i < ${#step_names[@]}; ++i)); do
    end=${step_starts[i + 1]}
    printf '%8d  %s\n' $((end - step_starts[i])) "${step_names[i]}"
  done
  printf '%8d  in all\n' "$SECONDS"
}
trap show_step_times EXIT

# Sets which cases of large matrices the tests try (tests/support/draw.hpp): one of $1. The seed is, if none is set, the first
# seven hexadecimal digits of the commit, so that each commit tries others.
draw_one_of() { # PART
  local commit
  commit=$(git rev-parse --short=7 HEAD 2>/dev/null || echo 1)
  export RONDO_TEST_PART=$1 RONDO_TEST_SEED=${RONDO_TEST_SEED:-$((16#${commit:0:7}))}
  echo "matrices of cases: one of $RONDO_TEST_PART, drawn by RONDO_TEST_SEED=$RONDO_TEST_SEED"
}
