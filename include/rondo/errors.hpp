/// \file
/// Every error that Rondo throws. Each message says which rank, towards which peer, in which call,
/// what happened, and the likely cure. docs/errors.md lists the texts, and says after which of them
/// a program may go on.
#pragma once

#include <stdexcept>
#include <string>

#include <rondo/export.hpp>

namespace rondo {

/// Base of all errors of the library.
class RONDO_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// Wrong arguments, or a call made at the wrong time. No data has moved; the communicator is intact
/// and the call may be made again, corrected. But if a gradient reducer throws it in an iteration,
/// that iteration's gradients are unspecified, and for device memory the communicator has ended:
/// see the reducers' headers.
class RONDO_API UsageError : public Error {
 public:
  using Error::Error;
  ~UsageError() override;
};

/// Two ranks made different calls. Names both ranks and both calls. Ends the communicator.
class RONDO_API MismatchError : public Error {
 public:
  using Error::Error;
  ~MismatchError() override;
};

/// A call did not finish by its deadline. Names the peer waited for. Ends the communicator.
class RONDO_API TimeoutError : public Error {
 public:
  using Error::Error;
  ~TimeoutError() override;
};

/// Another rank failed, ended, called abort() or destroyed its communicator before this call, or
/// its host vanished. Ends the communicator. On one host and between hosts by UCX each rank that
/// waits gets it, within a second (a host that vanishes: within ten), and it names the rank;
/// between hosts, others learn of it only as long as rank 0's process has a communicator, and after
/// that a deadline may come first. Between hosts by MPI it depends on how the ranks were started,
/// since Open MPI's mpirun ends all when one is killed: docs/starting.md.
class RONDO_API PeerError : public Error {
 public:
  using Error::Error;
  ~PeerError() override;
};

/// The system, MPI or UCX refused something that a link needs (shared memory, a message). Too
/// little shared memory is found when ranks join, or in the first call that needs it; a call ends
/// the communicator then.
class RONDO_API TransportError : public Error {
 public:
  using Error::Error;
  ~TransportError() override;
};

/// CUDA refused a call. Says the call, the device and CUDA's own words. Ends the communicator.
class RONDO_API CudaError : public Error {
 public:
  using Error::Error;
  ~CudaError() override;
};

}  // namespace rondo
