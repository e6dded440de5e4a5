#!/usr/bin/env bash
# Installs into an empty prefix, builds a program from nothing but that, runs it, and checks that the
# shared library exports the public interface alone: check.sh BUILD_FOLDER PROGRAM.cpp [MPI_PROGRAM.cpp]
set -euo pipefail
build=$1
program=$2
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

meson install -C "$build" --destdir "$prefix" --no-rebuild --quiet >/dev/null
pc=$(find "$prefix" -name rondo.pc)
[ -n "$pc" ] || { echo "rondo.pc is not installed" >&2; exit 1; }
library=$(find "$prefix" -name 'librondo.so' | head -1)
[ -f "${library%.so}.a" ] || { echo "librondo.a is not installed" >&2; exit 1; }

# The tree was moved: into $prefix.
export PKG_CONFIG_PATH=$(dirname "$pc")
moved=$(pkg-config --define-prefix --cflags --libs rondo)
[ "$moved" = "$(pkg-config --cflags --libs rondo)" ] || { echo "with --define-prefix: $moved" >&2; exit 1; }
read -ra flags <<<"$moved"
${CXX:-c++} -std=c++20 -Wall -Wextra -Werror "$program" -o "$prefix/program" "${flags[@]}"
LD_LIBRARY_PATH=$(dirname "$library") "$prefix/program"

if [ $# -gt 2 ]; then mpicxx -std=c++20 -Wall -Wextra "$3" -o "$prefix/mpi_program" "${flags[@]}"; fi

read -ra static_flags <<<"$(pkg-config --static --cflags --libs rondo | sed 's/-lrondo/-l:librondo.a/')"
${CXX:-c++} -std=c++20 "$program" -o "$prefix/static_program" "${static_flags[@]}"
"$prefix/static_program"

foreign=$(nm -D --defined-only --demangle "$library" | cut -d' ' -f3- |
  grep -vE '^(rondo::[A-Za-z]|(typeinfo|typeinfo name|vtable) for rondo::|GLIBC|RONDO)' || true)
inner=$(nm -D --defined-only --demangle "$library" | grep -E ' rondo::detail::' || true)
[ -z "$foreign$inner" ] || { printf 'exported, but not public:\n%s\n%s\n' "$foreign" "$inner" >&2; exit 1; }
