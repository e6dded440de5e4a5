// Where ranks that are processes meet: rank 0 listens there, and the others connect.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"

namespace rondo::detail {

// A try to connect to rank 0: the socket, or why there is none yet.
struct Attempt {
  FileDescriptor socket = FileDescriptor();
  std::string why_not = {};
};

class MeetingPoint {
 public:
  explicit MeetingPoint(std::string run = {}) : run_(std::move(run)) {}
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;
  virtual ~MeetingPoint() = default;

  // How errors name this place.
  [[nodiscard]] virtual const std::string& name() const = 0;
  // The function that the program has called.
  [[nodiscard]] virtual const char* caller() const = 0;
  // What both sides must know; empty if none is needed. After listen() or try_connect().
  [[nodiscard]] virtual std::string secret() const { return {}; }

  // The name of the run whose ranks meet here; empty where nobody names it.
  [[nodiscard]] const std::string& run() const { return run_; }

  // Whether nobody else was told this place, so that only ranks of that very run belong here.
  [[nodiscard]] virtual bool is_of_one_run() const { return false; }

  // Rank 0 calls this first. Returns the sockets at which it listens, one or several. `deadline`:
  // for name servers. Throws UsageError, TransportError.
  virtual std::vector<FileDescriptor> listen(Clock::time_point deadline) = 0;
  // After listen(): the error that rank 0 sends to every rank that comes; null if ranks may join.
  [[nodiscard]] const std::exception_ptr& refusal() const { return refusal_; }
  // Rank 0 calls this when all ranks have come, or none may come any more. Removes what shows where
  // rank 0 listens.
  virtual void close() noexcept {}
  // Rank 0 asks this now and then. Returns why the other ranks would find another process here;
  // empty if they find this one.
  [[nodiscard]] virtual std::string objection_to_myself() const { return {}; }
  // How errors name the process at the other end of an accepted connection.
  [[nodiscard]] virtual std::string stranger_name(const FileDescriptor& /*socket*/) const {
    return "a process";
  }
  // Returns why that process is sent away at once; empty if it may stay.
  [[nodiscard]] virtual std::string objection_to_stranger(const FileDescriptor& /*socket*/) const {
    return {};
  }

  // A rank other than 0 calls this. Tries once, until the deadline at most; the next call may try
  // another address. Throws UsageError or TransportError if trying again is useless.
  virtual Attempt try_connect(int rank, Clock::time_point deadline) = 0;
  // Whether the next try may find rank 0 although another process has answered this one.
  [[nodiscard]] virtual bool may_be_stale() const { return false; }
  // At how many places a rank 0 looks for another one before it listens.
  [[nodiscard]] virtual int looks_for_another() const { return 0; }

 protected:
  void refuse_all(std::exception_ptr refusal) { refusal_ = std::move(refusal); }

 private:
  std::string run_;
  std::exception_ptr refusal_;
};

}  // namespace rondo::detail
