#!/usr/bin/env bash
# Runs both commands of README in a bare Debian, installs as README says, and follows the first lines of two ways in, as a new user does:
# tools/bare.sh 12|13 [RUNS] [FOLDER]. RONDO_BARE_COMMANDS names others than "demo test install ways_in", for fewer, and also
# "packages", which builds the Debian packages, asks lintian, installs them and uses them.
# Makes a system with debootstrap, and clones the last commit into it, anew for each of RUNS runs (1). The commands' own times,
# for packages, build and run, are repeated at the end. The system is in FOLDER, a new temporary one without it; it is kept
# there if a command fails, and else removed. Needs root, a network that reaches Debian's servers and 6 GiB of room. What is
# started inside ends with this script.
set -euo pipefail
sources=$(cd "$(dirname "$0")/.." && pwd)
case ${1:-} in
  12) release=bookworm ;;
  13) release=trixie ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
runs=${2:-1}
[ "$(id -u)" = 0 ] || { echo "bare: making a Debian system needs root" >&2; exit 1; }
if [ "${RONDO_BARE_INSIDE:-}" = "" ]; then
  "$sources/tools/setup.sh" --bare
  # Mounts and processes of their own, which the system removes when this script ends, also if it is killed.
  RONDO_BARE_INSIDE=yes setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc "$0" "$@" &
  system=$!
  trap 'kill -KILL "$system"' INT TERM  # unshare itself ignores both while it waits for what it has started
  wait "$system"
  exit
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
# README's block that installs and compiles, for root, who has no sudo here, and whom mpirun refuses without an option.
install_as_readme_says() {
  local block
  block=$(sed -n '/^tools\/install.sh$/,/^```/p' "$root/root/rondo/README.md" |
    sed 's/sudo //g; s/^mpirun/mpirun --allow-run-as-root --oversubscribe/; /^```/d')
  [ -n "$block" ] || { echo "README has no block that begins with tools/install.sh"; return 1; }
  python3 "$sources/tests/readme/extract.py" "$root/root/rondo/README.md" >"$root/root/rondo/program.cpp"
  inside bash -exc "cd && cd rondo"$'\n'"$block"
}
# The first commands of two pages, of which each goes from a clone to a program that was not written for Rondo.
follow_the_ways_in() {
  local page
  cp "$sources/tests/ways_in/their_program.c" "$root/root/rondo/"
  for page in mpi pytorch; do
    python3 "$sources/tests/readme/extract.py" "$root/root/rondo/docs/ways_in/$page.md" 0 sh >"$root/root/rondo/$page.sh"
    # The first line installs. Root, and fewer cores than ranks.
    inside env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \
      bash -exc "cd && cd rondo && eval \"\$(head -1 $page.sh)\"; mpicc their_program.c -o their_program; eval \"\$(tail -n +2 $page.sh)\""
  done
}
# The packages, built with what debian/control names and nothing else, and a program that is built with the installed ones.
build_and_use_packages() {
  python3 "$sources/tests/readme/extract.py" "$root/root/rondo/README.md" >"$root/root/program.cpp"
  cp "$sources/tests/ways_in/their_program.c" "$root/root/"
  inside DEBIAN_FRONTEND=noninteractive bash -exc '
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends build-essential lintian
    cd ~/rondo
    apt-get build-dep -y -qq --no-install-recommends ./
    dpkg-buildpackage -b -us -uc
    lintian --allow-root --fail-on error ../rondo_*.changes
    apt-get install -y -qq ../librondo0_*.deb ../librondo-dev_*.deb ../rondo-tools_*.deb
    cd
    mpicxx -std=c++20 program.cpp $(pkg-config --cflags --libs rondo) -o program
    mpicc their_program.c -o their_program
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
    mpirun -n 2 ./program
    rondo-run --summary -n 2 ./their_program
    rondo-perf --help >/dev/null
    rondo-topo
    apt-get purge -y -qq librondo0 librondo-dev rondo-tools'
}
run_command() { # demo, test, install, ways_in or packages
  case $1 in
    install) install_as_readme_says ;;
    ways_in) follow_the_ways_in ;;
    packages) build_and_use_packages ;;
    *) inside bash -c "cd && cd rondo && tools/$1.sh" ;;
  esac
}

summary=
trap 'echo "$summary"' EXIT
for ((run = 1; run <= runs; ++run)); do
  rm -rf --one-file-system "$root"
  cp -a "$base" "$root"
  mount --bind "$root" "$root"  # the tests' network namespaces need a root that is a mount of its own
  mount -t proc proc "$root/proc"
  mount --rbind --make-rprivate /sys "$root/sys"
  mount --rbind --make-rprivate /dev "$root/dev"
  mount -t tmpfs shm "$root/dev/shm"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # debootstrap leaves this file to the installer of a system.
  printf '127.0.0.1 localhost %s\n::1 localhost\n' "$(hostname)" >"$root/etc/hosts"
  git clone -q "$sources" "$root/root/rondo"
  for command in ${RONDO_BARE_COMMANDS:-demo test install ways_in}; do
    log=$folder/$release-$run-$command.log
    start=$SECONDS
    code=0
    run_command "$command" >"$log" 2>&1 || code=$?
    summary+=$'\n'"Debian $1, run $run, $command: exit code $code, $((SECONDS - start)) s"$'\n'
    summary+=$(grep -E '^(not run|not built|Ok:|Fail:|Skipped:|Timeout:)' "$log" || true; sed -n '/^ seconds  step$/,$p' "$log")$'\n'
    if [ $code != 0 ]; then
      tail -60 "$log"
      echo "bare: $command failed; its output is in $log, the system in $root" >&2
      exit 1
    fi
  done
  umount -R -l "$root"
done
rm -rf --one-file-system "$root"
[ $# -gt 2 ] || rm -rf --one-file-system "$folder"
