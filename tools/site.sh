#!/usr/bin/env bash
# Makes a site of the guide (docs/index.md) and of the public headers' reference, by Doxygen: tools/site.sh [FOLDER], build/site without
# one. It begins at FOLDER/html/index.html. What Doxygen warns of is an error. Debian: doxygen, doxygen-awesome-css (tools/setup.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-build/site}")
mkdir -p "$folder"
rm -rf "$folder/html"
# The theme is made for light colours, which later releases have to be told.
settings=$(cat docs/site/Doxyfile)
if [ "$(printf '%s\n' 1.9.5 "$(doxygen --version | cut -d' ' -f1)" | sort -V | head -1)" = 1.9.5 ]; then settings+=$'\nHTML_COLORSTYLE = LIGHT'; fi
RONDO_VERSION=$(sed -n "s/^ *version: '\(.*\)',.*/\1/p" meson.build | head -1) RONDO_SITE=$folder doxygen - <<<"$settings"
echo "$folder/html/index.html"
