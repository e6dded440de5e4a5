/// \file
/// All that a program needs for ranks and host memory, in one include. Not included, since not
/// every build has or needs them: mpi.hpp (needs MPI's header), cuda.hpp and
/// cuda_gradient_reducer.hpp (device memory).
#pragma once

// A program starts here: groups of ranks, and their calls.
#include <rondo/adopt.hpp>
#include <rondo/collectives.hpp>
#include <rondo/communicator.hpp>
#include <rondo/exchanges.hpp>
#include <rondo/options.hpp>
#include <rondo/persistent_call.hpp>
#include <rondo/reachable_memory.hpp>
#include <rondo/registered_memory.hpp>
#include <rondo/start.hpp>
#include <rondo/user_reductions.hpp>
#include <rondo/work.hpp>

// Averages gradients while backprop goes on.
#include <rondo/gradient_reducer.hpp>

// What calls are made of, and what they throw.
#include <rondo/chunk.hpp>
#include <rondo/errors.hpp>
#include <rondo/types.hpp>
#include <rondo/user_reduction.hpp>

// Where ranks and threads are, what the library says, and which release it is.
#include <rondo/log.hpp>
#include <rondo/thread_binding.hpp>
#include <rondo/topology.hpp>
#include <rondo/version.hpp>
