// The command line's part in how ranks start: included where a program reads its options, and nowhere else.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::launch {

inline void add_rank_options(CLI::App& app, int& ranks, int& processes, int most) {
  app.add_option("--ranks", ranks, "ranks that are threads, without mpirun")
      ->check(CLI::Range(1, most));
  app.add_option("--processes", processes, "ranks that are forked processes, without mpirun")
      ->check(CLI::Range(1, most))
      ->excludes("--ranks");
}

}  // namespace rondo::launch
