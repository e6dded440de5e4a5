// The command-line options that say how ranks start. Include this only where a program reads its options.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::launch {

inline void add_rank_options(CLI::App& app, int& ranks, int& processes, int most) {
  app.add_option("--ranks", ranks, "ranks that are threads, without a launcher")
      ->check(CLI::Range(1, most));
  app.add_option("--processes", processes, "ranks that are forked processes, without a launcher")
      ->check(CLI::Range(1, most))
      ->excludes("--ranks");
}

}  // namespace rondo::launch
