#include "bootstrap/share_memory.hpp"

#include <array>
#include <optional>

#include <rondo/errors.hpp>

#include "base/index.hpp"
#include "base/put.hpp"
#include "bootstrap/local_socket.hpp"
#include "bootstrap/together.hpp"

namespace rondo::detail {
namespace {

struct Name {  // from leaders
  std::array<char, 64> text{};
};

struct Asked {  // from every rank: whose memory it has asked for
  int leader = -1;
};

struct Answer {  // from every rank
  bool mapped = false;
  std::array<char, 256> reason{};
};

}  // namespace

SharedMemory share_memory(Bootstrap& bootstrap, int leader, bool wanted, std::size_t bytes,
                          std::size_t reserved_bytes) {
  const bool leads = wanted && leader == bootstrap.rank();
  SharedObject mine;
  std::optional<FileOffer> offer;
  Name name;
  together(bootstrap, [&] {
    if (!leads) return;
    mine = create_shared(bytes, reserved_bytes);
    offer.emplace(mine.file);
    put(name.text, offer->name());
  });
  const std::vector<Name> names = bootstrap.exchange(name);

  FileDescriptor asked;
  Answer answer;
  try {
    if (wanted && !leads)
      asked = ask_for_file(names[Index(leader)].text.data(), deadline_after(bootstrap.patience()));
  } catch (const TransportError& failure) {
    put(answer.reason, failure.what());
  }
  int receivers = 0;
  for (const Asked& one : bootstrap.exchange(Asked{asked.valid() ? leader : -1})) {
    receivers += one.leader == bootstrap.rank() ? 1 : 0;
  }
  if (leads) offer->give(receivers, deadline_after(bootstrap.patience()));
  offer.reset();  // a rank that got no file sees its connection end

  try {
    if (asked.valid()) {
      // All ranks have asked before a leader hands out its file, so this waits only for a process
      // that has stopped.
      mine.file = receive_file(asked, deadline_after(bootstrap.patience()));
      mine.mapping = map_shared(mine.file, bytes);
    }
    answer.mapped = mine.mapping.data() != nullptr;
  } catch (const TransportError& failure) {
    put(answer.reason, failure.what());
  }
  SharedMemory result;
  for (const Answer& one : bootstrap.exchange(answer)) {
    result.mapped.push_back(one.mapped);
    result.reasons.emplace_back(one.reason.data());
  }
  result.object = std::move(mine);
  return result;
}

}  // namespace rondo::detail
