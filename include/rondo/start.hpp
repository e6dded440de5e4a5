/// \file
/// Communicators between processes that meet in a shared folder or at a network address, without
/// MPI.
#pragma once

#include <string>

#include <rondo/communicator.hpp>
#include <rondo/export.hpp>
#include <rondo/options.hpp>

namespace rondo {

/// This process as rank `rank` of `size` processes that meet at `url`:
/// - `file:///a/folder`: a folder that exists and that all ranks share, by NFS for instance. Rank 0
///   leaves a file in it that says where it listens, and removes the file when all have come. Only
///   that files can be renamed is asked of the file system. A file of an earlier run of this user
///   does no harm. Use a folder of its own for each group that joins at the same time, and one that
///   only you may write to, or a secret. Needs a build with libsodium.
/// - `unix:///a/path`: as from_socket().
/// - `tcp://host:port`, `tcp://192.168.0.1:port`, `tcp://[::1]:port`: an address of rank 0's host,
///   at which it listens until all have come. At a number it listens exactly there; at a name, at
///   all addresses of its host, or at those of NetworkOptions::interface. If other hosts can reach
///   the address, all ranks need the same secret (NetworkOptions), or must say that they trust the
///   network.
///
/// Ranks may come in any order, each within `options.timeout`. Whoever cannot prove to be a rank is
/// sent away. A rank that ends before all have come may come again.
///
/// Ranks of one host are then joined by shared memory.
///
/// Throws, on all ranks that have come:
/// - UsageError: a url that cannot be understood, ranks that do not fit together, an address that
///   needs a secret.
/// - TimeoutError: on rank 0 it names the ranks that did not come, and who was sent away and why;
///   on the others it says that rank 0 did not come.
/// - TransportError: rank 0 ended, another secret or version, or run; on rank 0 alone, no folder to
///   write to.
///
/// In a folder, what does not know the secret may be the rank 0 of an earlier run: there another
/// secret, version or run is a TimeoutError, whose text has that reason.
RONDO_API Communicator from_store(const std::string& url, int rank, int size,
                                  const CommunicatorOptions& options = {});

/// This process as the rank that its launcher has made it, by the variables that the launcher sets:
/// of rondo-launch, torchrun, Open MPI's mpirun or Slurm's srun; where several are present, the
/// first of these. A process that none of them started is the one rank of its group. The ranks meet
/// as by from_store(), at an address of rank 0's host:
/// - rondo-launch: at one that it chooses, with a secret that it makes;
/// - torchrun: at MASTER_ADDR and the port after MASTER_PORT, at which torchrun itself may listen;
/// - mpirun, srun on one host: at a port of the loopback interface that is computed from the job's
///   name: the first of 16 that is free, and where another run has it, the ranks tell each other
///   so;
/// - srun on several hosts: at the step's first host; mpirun on several: at mpirun's own host,
///   which must be that of rank 0.
///
/// RONDO_STORE, with a url as from_store() takes it, overrides the address that torchrun, mpirun or
/// srun give. On several hosts set RONDO_SECRET, unless rondo-launch started them. The program need
/// not call MPI; one that does may as well call from_mpi().
///
/// Throws what from_store() throws, and UsageError
/// - for variables that are missing or that cannot be understood;
/// - where Rondo does not know the launcher (PMI_RANK), unless that says that it has started only
///   this process;
/// - where two launchers say different things of this process, unless one of them may have started
///   the other (docs/starting.md).
RONDO_API Communicator from_environment(const CommunicatorOptions& options = {});

/// Who started this process, as from_environment() sees it: "rondo-launch", "torchrun", "Open MPI",
/// "Slurm", or "" for nobody.
RONDO_API std::string launcher();

}  // namespace rondo
