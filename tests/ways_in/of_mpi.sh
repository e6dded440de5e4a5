#!/bin/sh
# Runs mpi_answers under Rondo: of_mpi.sh RONDO_RUN RANKS PROGRAM ARGUMENT. Its answers must be those of MPI, and Rondo must
# have made calls of each function that it takes over.
set -eu
output=$("$1" --summary -n "$2" "$3" "$4" under_rondo 2>&1) || {
  echo "$output"
  exit 1
}
echo "$output"
[ "$2" -gt 1 ] || exit 0
if [ "$4" = serialized ]; then  # where Rondo takes nothing
  echo "$output" | grep -q "left to MPI: its thread level is MPI_THREAD_SERIALIZED"
  exit
fi
for function in Allreduce Reduce Reduce_scatter Reduce_scatter_block Bcast Allgather Allgatherv Gather Gatherv Scatter Scatterv \
  Alltoall Alltoallv Barrier; do
  echo "$output" | grep -Eq "^MPI_$function +[1-9]" || {
    echo "Rondo made no call of MPI_$function"
    exit 1
  }
done
if [ "$4" = threads ]; then
  echo "$output" | grep -Eq "^MPI_Iallreduce +[1-9]" || {
    echo "Rondo made no call of MPI_Iallreduce"
    exit 1
  }
fi
