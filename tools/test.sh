#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Arguments go to "meson test".
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
tools/build.sh build -Dmpi=enabled -Dhwloc=enabled -Dtests=enabled -Dbenchmarks=enabled -Dexamples=enabled
code=0
meson test -C build --print-errorlogs "$@" || code=$?
python3 tools/test_results.py build/meson-logs/testlog.json
tests=$(meson test -C build --list 2>/dev/null)
if [[ $tests != *gpu_device_group* ]]; then
  echo "not built: the tests that need a GPU, since the folder has no GPU part; tools/build.sh build -Dcuda=enabled builds it"
fi
exit $code
