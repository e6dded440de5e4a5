#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: tools/test.sh [--all] [ARGUMENTS OF "meson test"...].
# Of the large matrices of cases a run tries one of eight, drawn by a seed that it prints: by default the number of the
# commit, so that each commit tries others. RONDO_TEST_SEED sets another seed; --all tries all cases.
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
commit=$(git rev-parse --short=7 HEAD 2>/dev/null || echo 1)
export RONDO_TEST_PART=${RONDO_TEST_PART:-$part} RONDO_TEST_SEED=${RONDO_TEST_SEED:-$((16#${commit:0:7}))}
echo "one of $RONDO_TEST_PART cases of each matrix; RONDO_TEST_SEED=$RONDO_TEST_SEED"
code=0
meson test -C build --print-errorlogs "$@" || code=$?
python3 tools/test_results.py build/meson-logs/testlog.json
tests=$(meson test -C build --list 2>/dev/null)
if [[ $tests != *gpu_device_group* ]]; then
  echo "not built: the tests that need a GPU, since the folder has no GPU part; tools/build.sh build -Dcuda=enabled builds it"
fi
show_step_times
exit $code
