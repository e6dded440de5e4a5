// The connections of this process to the others that it has joined, by which it finds out whether a host has vanished: its power
// or its network has failed, so that it sends nothing, not even the end of a connection.
//
// After two seconds without data, TCP's keep-alive asks the system at the other end whether it still has the connection, and
// gives up after six more without an answer; the process there need not do anything. One thread waits at all connections.
// When the system gives one up, the thread tells that by all the others. So where rank 0 has a connection to each other
// rank, all processes hear of a vanished host, whatever calls their ranks are in, and also if rank 0 is in none.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/owner_process.hpp"

namespace rondo::detail {

// Random, so that processes of all hosts have different ones.
using ProcessName = std::uint64_t;
ProcessName name_of_this_process();

struct HostLink {
  ProcessName peer = 0;
  FileDescriptor socket = FileDescriptor();  // closed when the connection has ended
  std::array<std::byte, sizeof(ProcessName)> heard{};
  std::size_t heard_bytes = 0;
};

class HostLinks {
 public:
  // All communicators of this process share one.
  static std::shared_ptr<HostLinks> of_process();

  // Throws TransportError where the process has no descriptor left.
  HostLinks();
  HostLinks(const HostLinks&) = delete;
  HostLinks& operator=(const HostLinks&) = delete;
  ~HostLinks();

  // Watches a connected TCP socket until nobody holds the link any more and wake() is called. Throws TransportError where no
  // thread can be started.
  std::shared_ptr<HostLink> add(ProcessName peer, FileDescriptor socket);
  // A link to that process that stands; null if there is none.
  std::shared_ptr<HostLink> find(ProcessName peer);
  // Lets the thread see which links are held no more.
  void wake();

  // The processes whose hosts have vanished.
  std::set<ProcessName> vanished();

 private:
  void start();
  void serve();
  void listen(HostLink& link);
  void learn(ProcessName vanished);
  std::vector<std::shared_ptr<HostLink>> standing();

  OwnerProcess owner_process_;
  const FileDescriptor wake_;
  std::mutex mutex_;  // of all below, and of what is in the links
  bool stopping_ = false;
  std::vector<std::weak_ptr<HostLink>> links_;
  std::set<ProcessName> vanished_;
  std::thread thread_;  // started by the first link
};

}  // namespace rondo::detail
