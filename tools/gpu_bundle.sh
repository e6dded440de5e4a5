#!/usr/bin/env bash
# Fills .gpu-bundle with what tools/gpu_check.sh needs on a machine that has a GPU, nvcc, g++, Meson and
# Ninja, but neither packages nor a network: headers and libraries of the installed packages, pkg-config,
# and the data set. With --programs, the bundle has the built programs and the libraries that they load in
# place of headers: a machine whose time is dear then builds nothing. They have machine code for the
# GPUs of this machine, or, where it has none, for sm_80 and sm_90: code for all GPUs would not fit. Its C library must not be older than this machine's. Carry the repository with that folder to the machine.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
bundle=.gpu-bundle
rm -rf "$bundle"
mkdir -p "$bundle/root"
finish() {
  local megabytes
  megabytes=$(du -sm "$bundle" | cut -f1)
  echo "$bundle: $megabytes MB"
  [ "$megabytes" -lt 60 ] || { echo "the bundle must stay under 60 MB" >&2; exit 1; }
  exit 0
}

# The programs lie as in a build folder, so that they find librondo beside them. What the machine has itself stays out:
# the C and C++ libraries, the driver, cuDNN and cuBLAS.
if [ "${1:-}" = --programs ]; then
  source tools/gpu_programs.sh
  gpu_setup+=(-Dmpi=disabled -Dhwloc=disabled -Ducx=disabled)
  if [ -f build-gpu/build.ninja ]; then meson configure build-gpu "${gpu_setup[@]}"; else meson setup build-gpu "${gpu_setup[@]}"; fi
  gpu_targets build-gpu
  ninja -C build-gpu "${targets[@]}"
  programs=$(mktemp -d)
  trap 'rm -rf "$programs"' EXIT
  mkdir "$programs/libraries"
  for file in "${targets[@]}" src/librondo.so.0; do
    mkdir -p "$programs/$(dirname "$file")"
    strip -o "$programs/$file" "$(realpath "build-gpu/$file")"
  done
  for file in "${targets[@]}"; do ldd "build-gpu/$file"; done | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
    grep -Ev '/(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so|librondo|libcu|ld-)' | xargs cp -L -t "$programs/libraries"
  # One window over all programs, since each holds the same kernels.
  tar -C "$programs" -cf - . | xz -3 --lzma2=preset=3,dict=512MiB >"$bundle/programs.tar.xz"
  gpu_sources >"$bundle/programs.sources"
  data=/usr/share/datasets/fashion-mnist
  mkdir -p "$bundle/root$data"
  cp -L "$data"/* "$bundle/root$data/"
  finish
fi

# Prints the package that holds a library; the name of the package differs between releases.
package_of() { dpkg -S "/usr/lib/x86_64-linux-gnu/$1" | sed -n '1s/:.*//p'; }
packages=(libgtest-dev libhwy-dev libfmt-dev libcli11-dev nlohmann-json3-dev libasio-dev zlib1g-dev libxxhash-dev dataset-fashion-mnist pkgconf-bin libpkgconf3)
for library in 'libhwy.so.[0-9]*' 'libfmt.so.[0-9]*'; do
  package=$(package_of "$library")
  packages+=("$package")
done
for package in "${packages[@]}"; do
  files=$(dpkg -L "$package")
  while IFS= read -r file; do
    case $file in
      */hwy/tests/* | */hwy/contrib/*/*_test* | *libhwy_test* | *libhwy_contrib*) continue ;;
      *libz.so* | *libxxhash.so*) continue ;;  # the static libraries are enough
      /usr/include/* | */pkgconfig/*.pc | *.a | *.so | *.so.* | /usr/bin/pkgconf | /usr/share/datasets/*) ;;
      *) continue ;;
    esac
    [ -f "$file" ] || continue
    mkdir -p "$bundle/root$(dirname "$file")"
    cp -L "$file" "$bundle/root$file"  # copies, since links may be lost on the way
  done <<<"$files"
done

# pkg-config that looks in the bundle alone.
cat >"$bundle/pkg-config" <<'WRAPPER'
#!/bin/sh
root=$(cd "$(dirname "$0")" && pwd)/root
lib=$(dirname "$(find "$root" -name 'libpkgconf.so.*' | head -1)")
export PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$root/usr/lib/x86_64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig"
LD_LIBRARY_PATH="$lib" exec "$root/usr/bin/pkgconf" "$@"
WRAPPER
chmod +x "$bundle/pkg-config" "$bundle/root/usr/bin/pkgconf"

finish
