/* A user's program in C: it is built from the installed files only. */
#ifdef WITH_MPI
#include <rondo/mpi.h>
#endif
#include <rondo/rondo.h>
#include <stdio.h>

int main(void) {
  rondo_comm* comm = NULL;
  float numbers[3] = {1, 2, 3};
  int good = 0;
#ifdef WITH_MPI
  /* MPI is not started, which the function must say. */
  good = rondo_from_mpi(MPI_COMM_WORLD, NULL, &comm) == RONDO_USAGE_ERROR && comm == NULL;
  printf("%s\n", rondo_last_error());
  if (!good) return 1;
#endif
  good = rondo_local_group(1, NULL, &comm) == RONDO_OK &&
         rondo_all_reduce(comm, numbers, numbers, 3, RONDO_F32, RONDO_SUM, NULL) == RONDO_OK &&
         numbers[2] == 3 &&
         rondo_broadcast(comm, numbers, numbers, 3, RONDO_F32, 5, NULL) == RONDO_USAGE_ERROR;
  rondo_comm_destroy(comm);
  printf("rondo %s: %s\n", rondo_version(), good ? "good" : "wrong");
  return good ? 0 : 1;
}
