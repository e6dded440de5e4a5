/// \file
/// Marks what librondo exports; everything else in the library is hidden. All headers that declare something include this one first.
#pragma once

#if __cplusplus <= 201703L
#error "Rondo needs C++20: compile with -std=c++20 or a newer standard"
// Ends the compilation here: no such file exists, and the errors that would follow have the same cause.
#include <rondo/needs-std-c++20>
#endif

#define RONDO_API __attribute__((visibility("default")))
