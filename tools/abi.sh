#!/usr/bin/env bash
# Compares the library's binary interface with the recorded one, by libabigail: the symbols of librondo.so, and how the types of
# the public headers are laid out, which is recorded as GCC 12 has it.
#
#   tools/abi.sh BUILD_FOLDER             an error if a function has gone, or a type is laid out in another way
#   tools/abi.sh BUILD_FOLDER --record    records what is now
#
# Whoever records a change says so in CHANGELOG.md. Before a release of the same soname (src/meson.build), nothing that was
# recorded for the last one may disappear or change.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
recorded=tests/install/abi
command -v abidw >/dev/null || { echo "skipped: there is no abidw (Debian: abigail-tools)"; exit 77; }
library=$(readlink -f "$build/src/librondo.so")
grep -q rondo_from_mpi <(nm -D --defined-only "$library") || { echo "skipped: the record is of a build with MPI"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Functions that are no templates: the others depend on how the library was built.
nm -D --defined-only "$library" | awk '$2 == "T" {print $3}' | LC_ALL=C sort >"$scratch/symbols"
with_types=$([ "$(${CXX:-g++} -dumpversion | cut -d. -f1)" = 12 ] && echo yes || echo no)
if [ "$with_types" = yes ]; then
  ${CXX:-g++} -std=c++20 -g -O0 -shared -fPIC -Iinclude -I"$build/include" "tests/install/abi.cpp" -o "$scratch/types.so"
fi
if [ "${2:-}" = --record ]; then
  mkdir -p "$recorded"
  cp "$scratch/symbols" "$recorded/symbols"
  [ "$with_types" = yes ] || { echo "the types are recorded by GCC 12 alone" >&2; exit 1; }
  abidw --exported-interfaces-only --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed --no-architecture \
    --type-id-style hash --out-file "$recorded/types.xml" "$scratch/types.so"
  exit
fi
status=0
missing=$(LC_ALL=C comm -23 "$recorded/symbols" "$scratch/symbols")
added=$(LC_ALL=C comm -13 "$recorded/symbols" "$scratch/symbols")
if [ -n "$missing" ]; then
  printf 'These functions were recorded, and are not exported any more:\n%s\n' "$missing"
  status=1
fi
[ -z "$added" ] || printf 'Not recorded yet:\n%s\n' "$added"
if [ "$with_types" = yes ]; then
  abidiff --no-architecture "$recorded/types.xml" "$scratch/types.so" || status=1
else
  echo "The layout of types was not compared: the compiler is not GCC 12"
fi
if [ $status -ne 0 ]; then
  echo "The binary interface differs from the recorded one: see what tools/abi.sh says at its beginning"
fi
exit $status
