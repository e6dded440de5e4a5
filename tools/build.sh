#!/usr/bin/env bash
# Sets up and builds: tools/build.sh [FOLDER [MESON OPTIONS...] [-- TARGETS...]]. The default folder is build; without
# targets, everything is built. Options are also applied to a folder that was set up before. GPU kernels take minutes to
# compile: a folder that is set up without -Dcuda builds them only on a machine with a GPU.
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
if ! mkdir -p "$folder" 2>/dev/null || [ ! -w "$folder" ]; then
  echo "build: the folder $folder cannot be written; name another one, such as /tmp/rondo-build" >&2
  exit 1
fi
if [ ! -f "$folder/build.ninja" ]; then
  if [[ " ${options[*]} " != *" -Dcuda="* ]]; then
    devices=$(nvidia-smi -L 2>/dev/null) || true
    if [[ $devices == *GPU* ]]; then options+=(-Dcuda=auto); else options+=(-Dcuda=disabled); fi
  fi
  meson setup "$folder" "${options[@]}"
else
  meson configure "$folder" "${options[@]}"
fi
ninja -C "$folder" "$@"
