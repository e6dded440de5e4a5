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

  // As errors name it, and the function that the caller called.
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual const char* caller() const = 0;
  // What both sides must know; empty if none is needed. After listen() or try_connect().
  [[nodiscard]] virtual std::string secret() const { return {}; }

  // The name of the run whose ranks meet here; empty where nobody names it.
  [[nodiscard]] const std::string& run() const { return run_; }

  // Whether nobody else was told this place, so that only ranks of that very run belong here.
  [[nodiscard]] virtual bool is_of_one_run() const { return false; }

  // Rank 0: sockets at which it listens, one or several. `deadline`: for name servers. Throws
  // UsageError, TransportError.
  virtual std::vector<FileDescriptor> listen(Clock::time_point deadline) = 0;
  // Rank 0, after listen(): why it listens only to tell that to all ranks; null if it does not.
  [[nodiscard]] const std::exception_ptr& refusal() const { return refusal_; }
  // All ranks have come, or none may come any more: removes what shows where rank 0 listens.
  virtual void close() noexcept {}
  // Rank 0, now and then: why it is not the one whom the others find here; empty if it is.
  [[nodiscard]] virtual std::string objection_to_myself() const { return {}; }
  // Who is at the other end of an accepted connection, and why that process is sent away at once;
  // empty if it is not.
  [[nodiscard]] virtual std::string stranger_name(const FileDescriptor& /*socket*/) const {
    return "a process";
  }
  [[nodiscard]] virtual std::string objection_to_stranger(const FileDescriptor& /*socket*/) const {
    return {};
  }

  // Another rank: tries once, until the deadline at most, and the next time may try somewhere else.
  // Throws UsageError or TransportError if trying again is useless.
  virtual Attempt try_connect(int rank, Clock::time_point deadline) = 0;
  // Whether what answers there may be something else than rank 0, so that the next try may find
  // rank 0.
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
