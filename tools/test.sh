#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Arguments go to "meson test".
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
tools/build.sh build -Dmpi=enabled -Dhwloc=enabled -Dtests=enabled -Dbenchmarks=enabled -Dexamples=enabled
meson test -C build --print-errorlogs "$@"
