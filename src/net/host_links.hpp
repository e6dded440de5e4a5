// The connections of this process to the others that it has joined, by which it finds out whether a
// process has ended, or its host has vanished: its power or its network has failed, so that it
// sends nothing, not even the end of a connection.
//
// A process that needs a connection no more says so before it closes it. So a connection that is
// closed without a word is that of a process that has ended. (A child that the program forks closes
// its copies at once: it would keep them open when the process ends.)
//
// After two seconds without data, TCP's keep-alive asks the system at the other end whether it
// still has the connection, and gives up after six more without an answer; the process there need
// not do anything. One thread waits at all connections. When a connection ends, the thread sends
// that along all the others. So where rank 0 has a connection to each other rank, all processes
// learn it, whatever calls their ranks are in, and also if rank 0 is in none.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "base/kept_socket.hpp"
#include "base/owner_process.hpp"

namespace rondo::detail {

// It is random, so that processes of all hosts have different ones.
using ProcessName = std::uint64_t;
ProcessName name_of_this_process();

// A process sends this to another along their connection.
struct HostNotice {
  enum class What : std::uint64_t {
    vanished = 1,  // the host of `process`
    ended = 2,     // `process`
    leaves = 3     // `process`, which is the sender, closes this connection, and has not ended
  };
  What what = What::vanished;
  ProcessName process = 0;
};

struct HostLink {
  HostLink(ProcessName to, FileDescriptor connection) : peer(to), socket(std::move(connection)) {}
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;
  ~HostLink();  // says that this process leaves

  const ProcessName peer;
  KeptSocket socket;  // closed when the connection has ended
  bool peer_leaves = false;
  std::array<std::byte, sizeof(HostNotice)> received{};
  std::size_t received_bytes = 0;
};

// Call this before a connection is closed that the process at its other end may watch.
void say_that_this_process_leaves(const FileDescriptor& socket);

// A process that has ended, or whose host has vanished.
struct GoneProcess {
  ProcessName process = 0;
  bool host_vanished = false;
  Clock::time_point since;  // when this process noticed or was told
};

class HostLinks {
 public:
  // All communicators of this process share one.
  static std::shared_ptr<HostLinks> of_process();

  // Throws TransportError if the process has no descriptor left.
  HostLinks();
  HostLinks(const HostLinks&) = delete;
  HostLinks& operator=(const HostLinks&) = delete;
  ~HostLinks();

  // Watches a connected TCP socket until nobody holds the link any more and wake() is called.
  // Throws TransportError where no thread can be started.
  std::shared_ptr<HostLink> add(ProcessName peer, FileDescriptor socket);
  // Returns a link to that process that stands; null if there is none.
  std::shared_ptr<HostLink> find(ProcessName peer);
  // Lets the thread see which links are held no more.
  void wake();

  // In the order in which this process noticed them: where one has ended because of another, the
  // cause is first.
  std::vector<GoneProcess> gone();

 private:
  void serve();
  void listen(HostLink& link);
  void heed(HostLink& link, const HostNotice& notice);
  void learn(const HostNotice& notice);
  // Around fork(): no other thread changes the links meanwhile, and the child closes its copies of
  // the sockets.
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();
  std::vector<std::shared_ptr<HostLink>> standing();

  OwnerProcess owner_process_;
  const FileDescriptor wake_;
  std::mutex mutex_;  // of all below, and of what is in the links
  bool stopping_ = false;
  std::vector<std::weak_ptr<HostLink>> links_;
  std::vector<GoneProcess> gone_;
  std::thread thread_;  // started by the first link
};

}  // namespace rondo::detail
