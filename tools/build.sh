#!/usr/bin/env bash
# Sets up and builds: tools/build.sh [FOLDER [MESON OPTIONS...]]; the folder is build unless named. Options
# also reach a folder that was set up before.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build}
shift || true
if [ ! -f "$folder/build.ninja" ]; then
  meson setup "$folder" "$@"
elif [ $# -gt 0 ]; then
  meson configure "$folder" "$@"
fi
ninja -C "$folder"
