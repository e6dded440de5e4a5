// Where ranks that are processes meet: rank 0 listens there, and the others connect. Each kind of
// place is a function that turns what a URL says into where to listen, and into addresses and a
// secret.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rondo/options.hpp>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/addresses.hpp"
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/store_url.hpp"

namespace rondo::detail {

// What a rank connects to: the socket at a path, or one of several addresses.
struct Target {
  std::string path = {};
  std::vector<Address> addresses = {};
  std::string secret = {};   // that both sides must know; empty if none is needed
  std::string why_not = {};  // why there is neither, for now
};

// Rank 0's part of a meeting point, as long as ranks may come. Destroying it removes what shows
// where rank 0 listens.
struct Listening {
  std::vector<FileDescriptor> listeners = {};
  std::string secret = {};
  // The error that rank 0 sends to every rank that comes; null if ranks may join.
  std::exception_ptr refusal = nullptr;
  // Why the other ranks would find another process here; empty if they find this one.
  std::function<std::string()> objection = [] { return std::string(); };
  std::shared_ptr<void> sign = nullptr;  // whose destructor removes it
};

struct MeetingPoint {
  std::string name = {};         // as errors name this place
  const char* caller = nullptr;  // the function that the program has called
  std::string run = {};          // whose ranks meet here; empty where nobody names it
  // Whether nobody else knows this place, so that only ranks of that very run belong here.
  bool is_of_one_run = false;
  // Whether the next try may find rank 0 although another process has answered this one.
  bool may_be_stale = false;
  std::string if_silent = {};  // what an error says before why nobody answers
  int looks_for_another = 0;  // at how many places a rank 0 looks for another one before it listens

  // Rank 0 calls `listen` once. The deadline is for name servers. Throws UsageError,
  // TransportError.
  std::function<Listening(Clock::time_point)> listen = {};
  // The other ranks call `find` before each try to connect; it may find another address each time.
  // `port`: that of the last process that answered, which was not rank 0; 0 if none did. Throws
  // UsageError or TransportError if trying again is useless.
  std::function<Target(Clock::time_point, std::uint16_t port)> find = {};
};

// A Unix socket, for the processes of one user on one host. Throws UsageError for a path that a
// socket cannot have.
MeetingPoint meet_at_path(const std::string& path, std::string run = {});

// A TCP address. Rank 0 takes one of `ports`, the first of which is the URL's, or the URL's if
// there are none. `run`: the run that they belong to. `network` has its settings from the
// environment already. Throws UsageError.
MeetingPoint meet_at_address(const TcpUrl& url, std::vector<std::uint16_t> ports, std::string run,
                             const NetworkOptions& network);

// A folder that all ranks share, which may be on NFS: rank 0 leaves a contact there (contact.hpp),
// and the others connect to the addresses that it names. The file system must be able to rename a
// file; nothing is locked.
//
// A contact of an earlier run may still be there, if its rank 0 was killed. Nobody listens at its
// addresses any more, or a process that does not know its token; so a rank reads the contact again
// until it meets a rank 0 that knows it.
//
// Throws UsageError if it is no folder.
MeetingPoint meet_in_folder(const std::string& folder, std::string run,
                            const NetworkOptions& network);

// For ranks that can exchange blobs already: by these rank 0 sends the others its contact.
// Collective: rank 0's part is made when it listens, or when the meeting point is destroyed.
// `interface`: where rank 0 listens; empty: at all of this machine's.
MeetingPoint meet_where_told(Bootstrap& ranks, const std::string& interface);

}  // namespace rondo::detail
