#!/usr/bin/env bash
# Sets up and builds: tools/build.sh [FOLDER [MESON OPTIONS...]]; the folder is build unless named.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build}
shift || true
[ -f "$folder/build.ninja" ] || meson setup "$folder" "$@"
ninja -C "$folder"
