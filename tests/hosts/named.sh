#!/usr/bin/env bash
# Runs a program as if on another host: named.sh "NAME..." PROGRAM ARGUMENT... Each rank that mpirun has started gets the
# host name with its number, in a namespace of its own.
read -ra names <<<"$1"
shift
# shellcheck disable=SC2016  # the inner shell expands it
exec unshare --uts bash -c 'hostname "$0" && exec "$@"' "${names[$OMPI_COMM_WORLD_RANK]}" "$@"
