# For scripts that source this file: names their steps, and says at the end how long each took.
step_names=()
step_starts=()
step() { # NAME
  step_names+=("$1")
  step_starts+=("$SECONDS")
  printf '\n== %s\n' "$1"
}
show_step_times() {
  local i end
  step_starts+=("$SECONDS")
  printf '\n%8s  %s\n' seconds step
  for ((i = 0; i < ${#step_names[@]}; ++i)); do
    end=${step_starts[i + 1]}
    printf '%8d  %s\n' $((end - step_starts[i])) "${step_names[i]}"
  done
  printf '%8d  in all\n' "$SECONDS"
}
