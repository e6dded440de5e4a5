#!/usr/bin/env bash
# Sets up and builds: tools/build.sh [FOLDER [MESON OPTIONS...] [-- TARGETS...]]; the folder is build unless
# named, and everything is built unless targets are. Options also reach a folder that was set up before. GPU
# kernels take minutes to compile: without -Dcuda among the options, only where there is a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build}
shift || true
options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  options+=("$1")
  shift
done
[ $# = 0 ] || shift
if [[ " ${options[*]} " != *" -Dcuda="* ]]; then
  if nvidia-smi -L 2>/dev/null | grep -q GPU; then options+=(-Dcuda=auto); else options+=(-Dcuda=disabled); fi
fi
if [ ! -f "$folder/build.ninja" ]; then
  meson setup "$folder" "${options[@]}"
else
  meson configure "$folder" "${options[@]}"
fi
ninja -C "$folder" "$@"
