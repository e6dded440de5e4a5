/* All-reduces of an MPI that rondo-perf was not built with: for each size the median of the slowest rank's times, in us, of sums of
 * floats, out of place and in place, as rondo-perf has it. Calls are warmed up for 20 ms and timed for a third of a second, 10 at least.
 *
 *   mpicc -O2 all_reduce.c -o all_reduce && mpirun -n 2 ./all_reduce FIRST LAST FACTOR
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Makes `calls` calls. Returns the median of the slowest rank's times. */
static double median_us(float* in, float* out, int count, int in_place, int calls, double* times) {
  for (int call = 0; call < calls; ++call) {
    const double start = MPI_Wtime();
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    times[call] = (MPI_Wtime() - start) * 1e6;
  }
  MPI_Allreduce(MPI_IN_PLACE, times, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  qsort(times, (size_t)calls, sizeof(double), by_value);
  return times[calls / 2];
}

static int between(double value, int least, int most) { return value < least ? least : value > most ? most : (int)value; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 4) {
    if (rank == 0) fprintf(stderr, "usage: all_reduce FIRST LAST FACTOR\n");
    MPI_Finalize();
    return 2;
  }
  const long first = atol(argv[1]);
  const long last = atol(argv[2]);
  const long factor = atol(argv[3]);
  if (first < 4 || last < first || factor < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  enum { kMostCalls = 20000 };
  double* times = malloc(kMostCalls * sizeof(double));
  float* in = malloc((size_t)last);
  float* out = malloc((size_t)last);
  if (times == NULL || in == NULL || out == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  for (long bytes = first; bytes <= last; bytes *= factor) {
    const int count = (int)(bytes / 4);
    for (int in_place = 0; in_place < 2; ++in_place) {
      for (int i = 0; i < count; ++i) in[i] = out[i] = (float)(i % 3 + rank);
      const double guess_us = median_us(in, out, count, in_place, 5, times);
      const int calls = between(0.33e6 / guess_us, 10, kMostCalls);
      median_us(in, out, count, in_place, between(0.02e6 / guess_us, 5, kMostCalls), times);
      for (int i = 0; i < count; ++i) in[i] = out[i] = (float)(i % 3 == 0);
      MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      int right = 1;
      for (int i = 0; i < count; ++i) right &= out[i] == (float)(i % 3 == 0 ? size : 0);
      MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
      for (int i = 0; i < count; ++i) in[i] = out[i] = 0; /* in place, sums would grow with each call */
      MPI_Barrier(MPI_COMM_WORLD);
      const double us = median_us(in, out, count, in_place, calls, times);
      if (rank == 0) printf("%ld %s %.3f%s\n", bytes, in_place ? "in_place" : "out", us, right ? "" : " WRONG");
      if (rank == 0) fflush(stdout);
    }
  }
  free(times);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
