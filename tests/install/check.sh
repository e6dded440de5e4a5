#!/usr/bin/env bash
# Installs as README says, and builds and runs a program as it says. Then installs into an empty prefix that is moved, builds
# a program from nothing but that, shared and static, and checks that the shared library exports the public interface alone:
# check.sh BUILD_FOLDER PROGRAM.cpp [MPI_PROGRAM.cpp]
set -euo pipefail
build=$1
program=$2
mpi_program=${3:-}
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

# In a copy of /usr/local and /etc that only these commands see, and that is gone when they end.
as_readme_says() {
  mount -t tmpfs none "$prefix"
  for folder in /etc /usr/local; do
    mkdir -p "$prefix/new$folder" "$prefix/work$folder"
    mount -t overlay none -o "lowerdir=$folder,upperdir=$prefix/new$folder,workdir=$prefix/work$folder" "$folder"
  done
  meson install -C "$build" --no-rebuild --quiet >/dev/null
  ldconfig
  # shellcheck disable=SC2046  # several words
  ${CXX:-c++} -std=c++20 "$program" -o "$prefix/program" $(pkg-config --cflags --libs rondo)
  "$prefix/program"
  if [ -n "$mpi_program" ]; then
    # shellcheck disable=SC2046
    mpicxx -std=c++20 -O2 "$mpi_program" -o "$prefix/mpi_program" $(pkg-config --cflags --libs rondo)
    mpirun -n 2 --oversubscribe --allow-run-as-root "$prefix/mpi_program"
  fi
  for tool in "$prefix"/new/usr/local/bin/rondo-*; do "$tool" --version >/dev/null; done
}
if ! meson introspect --buildoptions "$build" | grep -qE '"name": "prefix",[^{}]*"value": "/usr/local"'; then
  echo "not run: README's way to install, since the build folder has a prefix of its own"
elif [ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null; then
  echo "not run: README's way to install, which needs root that may make a mount namespace"
else
  export -f as_readme_says
  export build program prefix mpi_program
  unshare --mount bash -euc as_readme_says
fi

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

# A program in C.
${CC:-cc} -std=c11 -Wall -Wextra -Werror -pedantic "${program%.cpp}.c" -o "$prefix/program_in_c" "${flags[@]}"
LD_LIBRARY_PATH=$(dirname "$library") "$prefix/program_in_c"
${CC:-cc} -std=c11 "${program%.cpp}.c" -o "$prefix/static_program_in_c" "${static_flags[@]}"
"$prefix/static_program_in_c"

# With other layouts of strings or containers, the program does not link, against either library.
for setting in _GLIBCXX_USE_CXX11_ABI=0 _GLIBCXX_DEBUG; do
  for link in flags static_flags; do
    declare -n words=$link
    errors=$(${CXX:-c++} -std=c++20 "-D$setting" "$program" -o "$prefix/other_program" "${words[@]}" 2>&1) && { echo "links with $setting" >&2; exit 1; }
    grep -q "undefined reference to .rondo::compiled_with_libstdcxx_and_${setting%%=*}" <<<"${errors//_and_GLIBCXX/_and__GLIBCXX}" || { echo "$errors" >&2; exit 1; }
  done
done

errors=$(${CXX:-c++} -std=c++20 -fpack-struct=1 -fsyntax-only "$program" "${flags[@]}" 2>&1) && { echo "compiles with packed structures" >&2; exit 1; }
grep -q "compile without -fpack-struct" <<<"$errors" || { echo "$errors" >&2; exit 1; }

# Each object file is checked, also after one that fits.
echo '#include <rondo/rondo.hpp>' >"$prefix/second.cpp"
${CXX:-c++} -std=c++20 -D_GLIBCXX_DEBUG -ffunction-sections -fdata-sections "${flags[@]}" -c "$prefix/second.cpp" -o "$prefix/second.o"
for option in -O0 -Wl,--gc-sections; do
  ${CXX:-c++} -std=c++20 "$option" "$program" "$prefix/second.o" -o "$prefix/other_program" "${flags[@]}" 2>/dev/null && { echo "links with a second object file of another layout, $option" >&2; exit 1; }
done

# An older standard is one error that says so, whichever header comes first.
for header in "$(pkg-config --variable=includedir rondo)"/rondo/*.hpp; do
  [ "${header##*/}" != version.hpp ] || continue  # macros alone
  errors=$(${CXX:-c++} -std=c++17 -fsyntax-only "${flags[@]}" -x c++ "$header" 2>&1) && { echo "$header compiles as C++17" >&2; exit 1; }
  grep -q "compile with -std=c++20" <<<"$errors" || [[ $errors == *mpi.h* ]] || { echo "$errors" >&2; exit 1; }
  [ "$(grep -c 'error: ' <<<"$errors")" -le 2 ] || { echo "$errors" >&2; exit 1; }
done

# The functions of the headers for C, and no others.
headers=$(pkg-config --variable=includedir rondo)/rondo
declared=$(cat "$headers"/*.h | grep -oE '\brondo_[a-z_]+\(' | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$library" | grep -oE '\brondo_[a-z_]+$' | sort -u)
difference=$(diff <(echo "$declared") <(echo "$exported") || true)
[ -z "$difference" ] || { printf 'declared in C (<), exported (>):\n%s\n' "$difference" >&2; exit 1; }

foreign=$(nm -D --defined-only --demangle "$library" | cut -d' ' -f3- |
  grep -vE '^(rondo::[A-Za-z]|rondo_[a-z_]+$|(typeinfo|typeinfo name|vtable) for rondo::|GLIBC|RONDO)' || true)
inner=$(nm -D --defined-only --demangle "$library" | grep -E ' rondo::detail::' || true)
[ -z "$foreign$inner" ] || { printf 'exported, but not public:\n%s\n%s\n' "$foreign" "$inner" >&2; exit 1; }
