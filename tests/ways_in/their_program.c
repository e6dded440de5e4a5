// An MPI program that knows nothing of Rondo.
#include <mpi.h>
int main(int count, char** words) {
  MPI_Init(&count, &words);
  int ranks, one = 1, sum = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int call = 0; call < 100; ++call)
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return sum == ranks ? 0 : 1;
}
