/// \file
/// All of Rondo but mpi.hpp, which needs MPI's own header.
#pragma once

#include <rondo/chunk.hpp>
#include <rondo/communicator.hpp>
#include <rondo/errors.hpp>
#include <rondo/gradient_reducer.hpp>
#include <rondo/log.hpp>
#include <rondo/options.hpp>
#include <rondo/topology.hpp>
#include <rondo/types.hpp>
#include <rondo/version.hpp>
#include <rondo/work.hpp>
