/* rondo/memory.h in a program in C. */

#include <rondo/memory.h>

#include <stddef.h>

int use_reachable_memory_in_c(void);

int use_reachable_memory_in_c(void) {
  size_t i;
  int wrong = 0;
  int* numbers = rondo_malloc(1000 * sizeof(int));
  if (numbers == NULL) return 1;
  for (i = 0; i < 1000; ++i) numbers[i] = (int)i;
  numbers = rondo_realloc(numbers, 100000 * sizeof(int));
  if (numbers == NULL) return 2;
  for (i = 0; i < 1000; ++i) wrong += numbers[i] != (int)i;
  rondo_free(numbers);
  return wrong == 0 ? 0 : 3;
}
