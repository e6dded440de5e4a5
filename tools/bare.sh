#!/usr/bin/env bash
# Runs both commands of README in a bare Debian, as a new user does: tools/bare.sh 12|13 [TIMES] [FOLDER]
# Makes a system with debootstrap, and clones the last commit into it. For each of TIMES runs (1) the system is made anew; the
# times of packages, build and run are those that the commands print, and are repeated at the end. The system is in FOLDER,
# a new temporary one without it, is kept there if a command fails, and else removed. Needs root, a network that reaches
# Debian's servers and 6 GiB of room. What is started inside ends with this script.
set -euo pipefail
sources=$(cd "$(dirname "$0")/.." && pwd)
case ${1:-} in
  12) release=bookworm ;;
  13) release=trixie ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
times=${2:-1}
[ "$(id -u)" = 0 ] || { echo "bare: making a Debian system needs root" >&2; exit 1; }
if [ "${RONDO_BARE_INSIDE:-}" = "" ]; then
  "$sources/tools/setup.sh" --bare
  # Mounts and processes of their own, which the system removes when this script ends, whatever happens.
  RONDO_BARE_INSIDE=yes exec unshare --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi

folder=${3:-$(mktemp -d)}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
base=$folder/base-$release
if [ ! -f "$base.done" ]; then
  rm -rf --one-file-system "$base"
  debootstrap --variant=minbase --include=git,ca-certificates "$release" "$base" >"$folder/debootstrap.log" 2>&1 ||
    { tail "$folder/debootstrap.log" >&2; exit 1; }
  touch "$base.done"
fi

root=$folder/root
inside() { chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"; }
summary=
for ((run = 1; run <= times; ++run)); do
  rm -rf --one-file-system "$root"
  cp -a "$base" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind --make-rprivate /sys "$root/sys"
  mount --rbind --make-rprivate /dev "$root/dev"
  mount -t tmpfs shm "$root/dev/shm"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  git clone -q "$sources" "$root/root/rondo"
  for command in demo test; do
    log=$folder/$release-$run-$command.log
    code=0
    inside bash -c "cd && cd rondo && tools/$command.sh" >"$log" 2>&1 || code=$?
    times_of=$(sed -n '/^ seconds  step$/,$p' "$log")
    summary+=$(printf '\nDebian %s, run %s, tools/%s.sh: exit code %s\n%s\n%s' "$1" "$run" "$command" "$code" "$(grep -E '^(not run|not built|Fail|Skipped|Ok):' "$log" || true)" "$times_of")$'\n'
    if [ $code != 0 ]; then
      tail -60 "$log"
      echo "$summary"
      echo "bare: tools/$command.sh failed; its output is in $log, the system in $root" >&2
      exit 1
    fi
  done
  umount -R "$root/proc" "$root/sys" "$root/dev"
done
echo "$summary"
rm -rf --one-file-system "$root"
[ $# -gt 2 ] || rm -rf --one-file-system "$folder"
