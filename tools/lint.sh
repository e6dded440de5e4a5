#!/usr/bin/env bash
# The format check, then clang-tidy: tools/lint.sh BUILD_FOLDER [REVISION]. With a revision, clang-tidy
# reads only what has changed since; without one, everything.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
since=${2:-}

git ls-files '*.hpp' '*.cpp' | xargs clang-format-19 --dry-run --Werror

if [ -n "$since" ] && ! git diff --name-only "$since" -- '*.hpp' '.clang-tidy' | grep -q .; then
  mapfile -t files < <(git diff --name-only --diff-filter=d "$since" -- '*.cpp')
else
  mapfile -t files < <(git ls-files '*.cpp')
fi
# Only files that this folder builds; Highway includes vector.cpp into itself, which clang-tidy cannot follow.
mapfile -t known < <(python3 -c "
import json, os, sys
built = {os.path.relpath(os.path.join(e['directory'], e['file'])) for e in json.load(open(sys.argv[1] + '/compile_commands.json'))}
print('\n'.join(f for f in sys.argv[2:] if f in built and f != 'src/reduce/vector.cpp'))" "$folder" "${files[@]}")
[ ${#known[@]} -gt 0 ] && [ -n "${known[0]}" ] || exit 0
printf '%s\n' "${known[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy-19 --quiet -p "$folder" 2>/dev/null
