#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: tools/test.sh [--all] [BUILD_FOLDER] [ARGUMENTS OF "meson test"...].
# The folder, known by a slash in its name, may be anywhere; it is ./build without one.
# Of the large matrices of cases a run tries one of eight, drawn by a seed that it prints; each commit has another seed.
# RONDO_TEST_SEED sets one; --all tries all cases.
set -euo pipefail
source_folder=$(cd "$(dirname "$0")/.." && pwd)
part=8
if [ "${1:-}" = --all ]; then
  part=1
  shift
fi
folder=$source_folder/build
if [[ ${1:-} == [!-]*/* || ${1:-} == /* ]]; then
  folder=$(realpath -m "$1")
  shift
fi
cd "$source_folder"
source tools/steps.sh

step "packages"
tools/setup.sh
step "build"
tools/build.sh "$folder" -Dmpi=enabled -Dhwloc=enabled -Dtests=enabled -Dbenchmarks=enabled -Dexamples=enabled
step "tests"
draw_one_of "$part"
code=0
meson test -C "$folder" --print-errorlogs "$@" || code=$?
python3 tools/test_results.py "$folder"/meson-logs/testlog.json
tests=$(meson test -C "$folder" --list 2>/dev/null)
if [[ $tests != *gpu_device_group* ]]; then
  echo "not built: the tests that need a GPU, since the folder has no GPU part; tools/build.sh $folder -Dcuda=enabled builds it"
fi
exit $code
