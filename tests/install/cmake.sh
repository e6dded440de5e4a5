#!/usr/bin/env bash
# Programs in C++ and C, shared and static, that find Rondo by CMake in a tree that was moved, that have it by FetchContent,
# and that have it as a subproject of Meson: cmake.sh BUILD_FOLDER REPOSITORY PROGRAM.cpp PROGRAM.c [mpi]
set -euo pipefail
build=$1
repository=$2
program=$3
program_in_c=$4
has_mpi=${5:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

run() { # WHAT COMMAND...
  local what=$1
  shift
  "$@" >"$folder/output" 2>&1 || { echo "FAILED: $what" >&2; cat "$folder/output" >&2; exit 1; }
}
refused() { # WHAT TEXT COMMAND...
  local what=$1 text=$2
  shift 2
  if "$@" >"$folder/output" 2>&1; then
    echo "not refused: $what" >&2
    exit 1
  fi
  grep -q "$text" "$folder/output" || { cat "$folder/output" >&2; exit 1; }
}

meson install -C "$build" --destdir "$folder/first" --no-rebuild --quiet >/dev/null
config=$(find "$folder/first" -name rondo-config.cmake)
[ -n "$config" ] || { echo "rondo-config.cmake is not installed" >&2; exit 1; }
mv "${config%/lib*/cmake/*}" "$folder/moved"

make_project() { # NAME LANGUAGES LINES...
  mkdir -p "$folder/$1"
  cp "$program" "$folder/$1/program.cpp"
  cp "$program_in_c" "$folder/$1/program.c"
  {
    echo "cmake_minimum_required(VERSION 3.18)"
    echo "project(program LANGUAGES $2)"
    printf '%s\n' "${@:3}"
  } >"$folder/$1/CMakeLists.txt"
}
executable() { # NAME SOURCE LIBRARIES
  echo "add_executable($1 $2)"
  echo "target_link_libraries($1 PRIVATE $3)"
}
four=$(executable cpp_shared program.cpp rondo::rondo; executable cpp_static program.cpp rondo::rondo_static
  executable c_shared program.c rondo::rondo; executable c_static program.c rondo::rondo_static)
check_programs() { # FOLDER
  local one
  for one in "$1"/{cpp,c}_{shared,static}; do
    if [ ! -e "$one" ]; then continue; fi
    run "$one" "$one"
    case "$one:$(ldd "$one")" in *_static:*librondo*) echo "$one needs librondo.so" >&2; exit 1 ;; esac
  done
}
build_and_run() { # NAME [OPTIONS FOR CMAKE...]
  run "$1: set up" cmake -S "$folder/$1" -B "$folder/$1/build" -DCMAKE_PREFIX_PATH="$folder/moved" "${@:2}"
  run "$1: build" cmake --build "$folder/$1/build"
  check_programs "$folder/$1/build"
  echo "ok: $1"
}

make_project found "C CXX" "find_package(rondo 0.1 REQUIRED)" "$four"
build_and_run found
make_project in_c C "find_package(rondo REQUIRED)" "$(executable c_static program.c rondo::rondo_static)"
build_and_run in_c
if [ -n "$has_mpi" ]; then
  make_project mpi_in_c C "find_package(rondo REQUIRED COMPONENTS mpi)" "$(executable c_shared program.c "rondo::rondo rondo::mpi")" \
    "target_compile_definitions(c_shared PRIVATE WITH_MPI)"
  build_and_run mpi_in_c
  make_project mpi_in_cpp CXX "find_package(rondo REQUIRED OPTIONAL_COMPONENTS mpi)" "$(executable cpp_static program.cpp "rondo::rondo_static rondo::mpi")" \
    "target_compile_options(cpp_static PRIVATE -include rondo/mpi.hpp)"
  build_and_run mpi_in_cpp
fi
make_project nothing CXX "find_package(rondo REQUIRED COMPONENTS something)"
refused "a component that there is not" "Rondo has no component something" cmake -S "$folder/nothing" -B "$folder/nothing/build" -DCMAKE_PREFIX_PATH="$folder/moved"
make_project newer CXX "find_package(rondo 0.9 REQUIRED)"
refused "another minor release" "version: 0.1" cmake -S "$folder/newer" -B "$folder/newer/build" -DCMAKE_PREFIX_PATH="$folder/moved"

# The example of docs/ways_in/c.md, as it says there.
if [ -x "$folder/moved/bin/rondo-launch" ]; then
  python3 "$repository/tests/readme/extract.py" "$repository/docs/ways_in/c.md" 0 c >"$folder/example.c"
  library=$(dirname "$(find "$folder/moved" -name librondo.so)")
  read -ra flags <<<"$(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs rondo)"
  run "example in C: build" cc -std=c11 -pedantic -Wall -Wextra -Werror "$folder/example.c" -o "$folder/example" "${flags[@]}"
  LD_LIBRARY_PATH=$library run "example in C: run" "$folder/moved/bin/rondo-launch" -n 2 "$folder/example"
  grep -q "rank 1 of 2 has the sum 2" "$folder/output" || { cat "$folder/output" >&2; exit 1; }
  echo "ok: example in C"
fi

# Both compile the library anew, without optimisation: a run that tries a part of matrices tries one of them (RONDO_TEST_PART).
both=1
if [ "${RONDO_TEST_PART:-1}" -gt 1 ]; then both=""; fi
if [ -n "$both" ] || [ $((${RONDO_TEST_SEED:-1} % 2)) = 0 ]; then
  # FetchContent is found by find_package where CMake can do that.
  override=""
  if cmake --version | awk '/version/ { split($3, v, "."); exit !(v[1] > 3 || v[2] >= 24) }'; then override="OVERRIDE_FIND_PACKAGE"; fi
  make_project fetched "C CXX" "include(FetchContent)" "FetchContent_Declare(rondo SOURCE_DIR \"$repository\" $override)" "FetchContent_MakeAvailable(rondo)" \
    "${override:+find_package(rondo REQUIRED)}" "$four"
  build_and_run fetched "-DRONDO_MESON_OPTIONS=-Doptimization=0 -Dcuda=disabled -Dmpi=disabled"
fi

if [ -n "$both" ] || [ $((${RONDO_TEST_SEED:-1} % 2)) = 1 ]; then
  mkdir -p "$folder/subproject/subprojects"
  ln -s "$repository" "$folder/subproject/subprojects/rondo"
  printf '[wrap-file]\ndirectory = rondo\n[provide]\ndependency_names = rondo\n' >"$folder/subproject/subprojects/rondo.wrap"
  cp "$program" "$folder/subproject/program.cpp"
  cp "$program_in_c" "$folder/subproject/program.c"
  cat >"$folder/subproject/meson.build" <<'MESON'
project('program', 'c', 'cpp', default_options: ['cpp_std=c++20', 'optimization=0'])
foreach language : ['c', 'cpp']
  executable(language + '_shared', 'program.' + language, dependencies: dependency('rondo'))
  executable(language + '_static', 'program.' + language, dependencies: dependency('rondo', static: true))
endforeach
MESON
  run "subproject: set up" meson setup "$folder/subproject/build" "$folder/subproject" --force-fallback-for=rondo -Drondo:cuda=disabled -Drondo:mpi=disabled
  run "subproject: build" ninja -C "$folder/subproject/build"
  check_programs "$folder/subproject/build"
  echo "ok: subproject"
fi
