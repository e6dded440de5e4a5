// What rondo-perf is asked to do.
#pragma once

#include <cstdint>
#include <rondo/cuda.hpp>
#include <rondo/options.hpp>
#include <rondo/types.hpp>
#include <string>
#include <vector>

namespace rondo::perf {

struct Options {
  Collective op = Collective::all_reduce;
  std::vector<std::string> algos;
  std::uint64_t first_bytes = 4;
  std::uint64_t last_bytes = std::uint64_t{64} << 20U;
  double factor = 4;
  DataType type = DataType::f32;
  ReduceOp redop = ReduceOp::sum;
  int iterations = 0;  // 0: about a third of a second for each row
  int warmups = 5;
  bool registered = false;  // buffers are memory of reachable_memory()
  bool fresh = false;       // each rank writes its input before each timed call
  bool use = false;         // also time the call together with reading the result
  double compute_us = 0;    // each rank computes for so long between timed calls
  int ranks = 0;            // 0: the processes of mpirun
  int processes = 0;        // forked by this process, instead of mpirun
  bool on_devices = false;
  CommunicatorOptions host;
  cuda::Options devices;
  std::string json;
  std::string tune;  // a file to write, instead of measuring rows
};

// Reads the command line; exits the program after --help, --version or an error. `has_mpi`: the
// program is built with MPI; `has_gloo`: with Gloo.
Options parse(int argc, char** argv, bool has_mpi, bool has_gloo);

}  // namespace rondo::perf
