#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: tools/test.sh [--all] [ARGUMENTS OF "meson test"...].
# Of the large matrices of cases a run tries one of eight, drawn by a seed that it prints; each commit has another seed.
# RONDO_TEST_SEED sets one; --all tries all cases.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/steps.sh
part=8
if [ "${1:-}" = --all ]; then
  part=1
  shift
fi

step "packages"
tools/setup.sh
step "build"
tools/build.sh build -Dmpi=enabled -Dhwloc=enabled -Dtests=enabled -Dbenchmarks=enabled -Dexamples=enabled
step "tests"
draw_one_of "$part"
code=0
meson test -C build --print-errorlogs "$@" || code=$?
python3 tools/test_results.py build/meson-logs/testlog.json
tests=$(meson test -C build --list 2>/dev/null)
if [[ $tests != *gpu_device_group* ]]; then
  echo "not built: the tests that need a GPU, since the folder has no GPU part; tools/build.sh build -Dcuda=enabled builds it"
fi
exit $code
