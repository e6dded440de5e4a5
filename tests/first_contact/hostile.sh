#!/usr/bin/env bash
# What a newcomer meets whose machine is not as README expects: hostile.sh SOURCES. A network that reaches no server of packages;
# sources that cannot be written, where a mount namespace can be made.
set -uo pipefail
sources=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
check() { # WHAT CONDITION...
  local what=$1
  shift
  if "$@"; then echo "ok: $what"; else
    echo "FAILED: $what"
    cat "$work/output"
    failed=1
  fi
}

# Programs that stand for a machine without one package, whose network reaches nothing.
mkdir "$work/bin"
cat >"$work/bin/dpkg-query" <<'STUB'
#!/bin/sh
case "$*" in *libhwy-dev*) exit 1 ;; *) echo "install ok installed" ;; esac
STUB
cat >"$work/bin/apt-get" <<'STUB'
#!/bin/sh
echo "Err: Temporary failure resolving the name of a server" >&2
exit 100
STUB
printf '#!/bin/sh\nexec "$@"\n' >"$work/bin/sudo"
sed -i 's/^exec "$@"/case $1 in *=*) shift ;; esac; exec "$@"/' "$work/bin/sudo"
chmod +x "$work"/bin/*
PATH=$work/bin:$PATH "$sources/tools/setup.sh" >"$work/output" 2>&1
check "without a network the packages' script fails" [ $? = 1 ]
check "and its last line says what is missing, and why" \
  grep -q "^setup: these packages could not be installed: libhwy-dev. Is there a network" <(tail -1 "$work/output")

# The same in a command: nothing comes after the reason.
mkdir -p "$work/sources/tools"
cp "$sources"/tools/*.sh "$work/sources/tools"
for command in demo test; do
  PATH=$work/bin:$PATH "$work/sources/tools/$command.sh" "$work/folder" >"$work/output" 2>&1
  check "without a network tools/$command.sh fails" [ $? = 1 ]
  check "and ends with the reason" \
    grep -q "^setup: these packages could not be installed: libhwy-dev. Is there a network" <(tail -1 "$work/output")
done

if [ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null; then
  echo "not run: sources that cannot be written, which needs root that may make a mount namespace"
  exit $failed
fi
# Only this command sees the file system so.
read_only() { unshare --mount bash -euc 'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; cd "$0"; exec "$@"' "$sources" "$@"; }
# Of the two commands the packages' step is that of above.
read_only env PATH="$work/bin:$PATH" bash -c 'tools/build.sh build' >"$work/output" 2>&1
check "sources that cannot be written are an error" [ $? = 1 ]
check "of one line, with the cure" [ "$(cat "$work/output")" = "build: the folder build cannot be written; name another one, such as /tmp/rondo-build" ]
read_only tools/build.sh "$work/build" -Dmpi=disabled -Dhwloc=disabled -Dtests=disabled -Dbenchmarks=disabled -Dexamples=disabled -Dcuda=disabled -- build.ninja >"$work/output" 2>&1
check "a folder elsewhere can be set up" [ $? = 0 ]
object=$(ninja -C "$work/build" -t targets all | sed -n 's/^\(.*base_names.cpp.o\):.*/\1/p' | head -1)
read_only tools/build.sh "$work/build" -- "$object" >"$work/output" 2>&1
check "and what is built there does not touch them" [ $? = 0 ]
exit $failed
