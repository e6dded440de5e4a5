/// \file
/// Marks what librondo exports; everything else in the library is hidden. All headers that declare
/// something include this one first.
#pragma once

#if __cplusplus <= 201703L
#error "Rondo needs C++20: compile with -std=c++20 or a newer standard"
// Ends the compilation here: no such file exists, and the errors that would follow have the same
// cause.
#include <rondo/needs-std-c++20>
#endif

#define RONDO_API __attribute__((visibility("default")))

// Strings and vectors of the C++ library pass between a program and Rondo, and their layout depends
// on the settings with which each is compiled. So the library exports a symbol that is named after
// its settings, and each object file that includes one of these headers needs the symbol of its own
// settings. Where they differ, the program does not link, or the plugin does not load, and the name
// of the missing symbol says why.
#include <version>

#if defined(_GLIBCXX_DEBUG) && defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI == 0
#define RONDO_LAYOUT compiled_with_libstdcxx_and_GLIBCXX_DEBUG_and_GLIBCXX_USE_CXX11_ABI_0
#elif defined(_GLIBCXX_DEBUG)
#define RONDO_LAYOUT compiled_with_libstdcxx_and_GLIBCXX_DEBUG
#elif defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI == 0
#define RONDO_LAYOUT compiled_with_libstdcxx_and_GLIBCXX_USE_CXX11_ABI_0
#elif defined(__GLIBCXX__)
#define RONDO_LAYOUT compiled_with_libstdcxx
#elif defined(_LIBCPP_VERSION)
#define RONDO_LAYOUT compiled_with_libcxx
#else
#define RONDO_LAYOUT compiled_with_another_cxx_library
#endif

namespace rondo {
extern RONDO_API const char RONDO_LAYOUT;
namespace detail {
struct Padded {
  char letter;
  void* pointer;
};
static_assert(sizeof(Padded) == 2 * sizeof(void*),
              "Rondo's structures have the system's usual layout: compile without -fpack-struct");
// Static, not inline: of inline variables the linker keeps one for all object files, and would
// check only that one.
#if !defined(__CUDACC__) && defined(__has_cpp_attribute) && __has_cpp_attribute(gnu::retain)
[[gnu::used, gnu::retain]]  // also with --gc-sections
#else
[[gnu::used]]
#endif
static const char* const needed_layout = &RONDO_LAYOUT;
}  // namespace detail
}  // namespace rondo
