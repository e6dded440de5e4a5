/* The C interface in a program in C11. */
#include <rondo/rondo.h>

#include <stddef.h>
#include <stdint.h>

int use_rondo_in_c(rondo_comm* comm);

static rondo_status reduce(void* user, rondo_comm* comm, const rondo_bucket* bucket) {
  (void)user;
  return rondo_all_reduce(comm, bucket->data, bucket->data, bucket->count, bucket->type, RONDO_SUM,
                          NULL);
}

/* With three ranks. Returns 0 if all is right. */
int use_rondo_in_c(rondo_comm* comm) {
  const int rank = rondo_rank(comm);
  double* numbers = rondo_malloc(1000 * sizeof(double));
  rondo_call_options options = RONDO_CALL_OPTIONS;
  rondo_call call = RONDO_CALL(RONDO_BROADCAST);
  rondo_work* work = NULL;
  rondo_reducer* reducer = NULL;
  float gradient[4];
  float value[4] = {1, 2, 3, 4};
  rondo_parameter parameters[] = {RONDO_PARAMETER("value", gradient, value, 4, RONDO_F32)};
  rondo_gradient_options gradient_options = RONDO_GRADIENT_OPTIONS;
  size_t i;
  int wrong = 0;
  if (numbers == NULL || rondo_size(comm) != 3) return 1;
  for (i = 0; i < 1000; ++i) numbers[i] = (double)i + rank;
  options.timeout_s = 30;
  if (rondo_all_reduce(comm, numbers, numbers, 1000, RONDO_F64, RONDO_SUM, &options) != RONDO_OK) {
    return 2;
  }
  for (i = 0; i < 1000; ++i) wrong += numbers[i] != 3.0 * (double)i + 3;
  call.in = call.out = numbers;
  call.count = 1000;
  call.type = RONDO_F64;
  call.root = 2;
  numbers[7] = rank;
  if (rondo_start(comm, &call, &work) != RONDO_OK || rondo_wait(work) != RONDO_OK) return 3;
  rondo_work_destroy(work);
  wrong += numbers[7] != 2;
  rondo_free(numbers);
  if (rondo_send(comm, NULL, 1, RONDO_F32, 9, NULL) != RONDO_USAGE_ERROR) return 4;
  if (rondo_last_error()[0] == '\0') return 5;

  gradient_options.hook = reduce;
  if (rondo_reducer_create(comm, parameters, 1, &gradient_options, &reducer) != RONDO_OK) return 6;
  for (i = 0; i < 4; ++i) gradient[i] = (float)(rank + 1);
  if (rondo_reducer_mark_ready(reducer, 0) != RONDO_OK) return 7;
  if (rondo_reducer_finish(reducer) != RONDO_OK) return 8;
  for (i = 0; i < 4; ++i) wrong += gradient[i] != 2.0F;
  rondo_reducer_destroy(reducer);
  return wrong == 0 ? 0 : 9;
}
