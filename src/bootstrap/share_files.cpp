#include "bootstrap/share_files.hpp"

#include <array>
#include <exception>
#include <optional>
#include <utility>

#include <rondo/errors.hpp>

#include "base/index.hpp"
#include "base/log.hpp"
#include "base/put.hpp"
#include "bootstrap/local_socket.hpp"
#include "bootstrap/together.hpp"

namespace rondo::detail {
namespace {

struct Name {  // from the lowest rank of each host
  std::array<char, 64> text{};
};

struct Brought {  // from every rank: to whom it has brought its file
  int leader = -1;
};

// The leader takes the files that `count` ranks have brought, and hands each to all of them.
void collect(const FileOffer& desk, int count, const FileDescriptor& mine,
             const std::function<void(const FileDescriptor&)>& take, Clock::time_point deadline) {
  std::vector<FileDescriptor> ranks;
  for (int i = 0; i < count; ++i) {
    ranks.push_back(desk.accept(deadline));
    if (!ranks.back().valid()) return;
  }
  const auto give_to_all = [&](const FileDescriptor& file) {
    for (const FileDescriptor& rank : ranks) static_cast<void>(send_file(rank, file));
  };
  give_to_all(mine);
  for (const FileDescriptor& rank : ranks) {
    const FileDescriptor file = receive_file(rank, deadline);
    give_to_all(file);
    take(file);
  }
}

}  // namespace

void share_files(Bootstrap& bootstrap, const std::vector<int>& sharing, const FileDescriptor& mine,
                 const std::function<void(const FileDescriptor&)>& take) {
  const int leader = sharing.front();
  const bool leads = leader == bootstrap.rank();
  std::optional<FileOffer> desk;
  Name name;
  together(bootstrap, [&] {
    if (!leads || sharing.size() == 1) return;
    desk.emplace(mine);
    put(name.text, desk->name());
  });
  const std::vector<Name> names = bootstrap.exchange(name);

  const Clock::time_point deadline = deadline_after(bootstrap.patience());
  FileDescriptor asked;
  Brought brought;
  try {
    if (!leads) {
      asked = ask_for_file(names[Index(leader)].text.data(), deadline);
      if (send_file(asked, mine)) brought.leader = leader;
    }
  } catch (const TransportError& failure) {
    log(LogLevel::info, "rank {} {}", bootstrap.rank(), failure.what());
  }
  // All have brought theirs when a leader collects them, so nobody waits long.
  int count = 0;
  for (const Brought& one : bootstrap.exchange(brought)) count += one.leader == leader ? 1 : 0;
  try {
    if (desk) {
      collect(*desk, count, mine, take, deadline);
    } else if (brought.leader == leader) {
      for (int i = 0; i <= count; ++i) take(receive_file(asked, deadline));
    }
  } catch (const std::exception& failure) {
    log(LogLevel::info, "rank {} {}", bootstrap.rank(), failure.what());
  }
}

}  // namespace rondo::detail
