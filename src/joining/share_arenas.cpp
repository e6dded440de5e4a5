#include "joining/share_arenas.hpp"

#include <algorithm>
#include <exception>
#include <string>

#include <rondo/errors.hpp>

#include "base/index.hpp"
#include "base/log.hpp"
#include "bootstrap/share_files.hpp"
#include "bootstrap/together.hpp"
#include "memory/process_arena.hpp"

namespace rondo::detail {
namespace {

class Sharing {
 public:
  Sharing(Bootstrap& bootstrap, const std::vector<int>& sharing)
      : bootstrap_(bootstrap), sharing_(sharing) {}

  Reach run() {
    std::size_t most = 0;  // ranks that share a segment
    for (const std::size_t ranks : bootstrap_.exchange(sharing_.size())) {
      most = std::max(most, ranks);
    }
    if (most == 1) return {};  // no rank has to reach the memory of another
    together(bootstrap_, [&] { own_ = process_arena(); });
    names_ = bootstrap_.exchange(own_ == nullptr ? ArenaName{} : name_of(*own_));
    const bool all_have_one = std::all_of(names_.begin(), names_.end(),
                                          [](const ArenaName& name) { return name.bytes > 0; });
    if (!all_have_one) return {};
    by_rank_.resize(names_.size());
    bool all_known = true;
    for (const int rank : sharing_) all_known &= find(rank);
    // The ranks of a split have mapped all arenas before.
    if (!agree(all_known) && !agree(map_files())) return {};
    return {*own_, std::move(by_rank_)};
  }

 private:
  // Whether it is so on all ranks.
  bool agree(bool here) {
    const std::vector<int> all = bootstrap_.exchange(here ? 1 : 0);
    return std::find(all.begin(), all.end(), 0) == all.end();
  }

  bool find(int rank) {
    const ArenaName& name = names_[Index(rank)];
    Reach::RankArena& arena = by_rank_[Index(rank)];
    if (name == names_[Index(bootstrap_.rank())]) {
      arena.data = own_->data();
      return true;
    }
    arena.owner = mapped_arena(name);
    arena.data = arena.owner == nullptr ? nullptr : arena.owner->data();
    return arena.data != nullptr;
  }

  bool map_files() {
    std::vector<PeerArena> mapped;  // until by_rank_ has them
    share_files(bootstrap_, sharing_, own_->file(), [&](const FileDescriptor& file) {
      const ArenaName name = name_of(file);
      const bool expected = std::any_of(sharing_.begin(), sharing_.end(),
                                        [&](int rank) { return names_[Index(rank)] == name; });
      if (!expected || name == name_of(*own_)) return;
      try {
        mapped.push_back(map_arena(file, name));
      } catch (const std::exception& error) {
        log(LogLevel::warning,
            "rank {} cannot map the memory of another rank of its host, so that no buffer is "
            "reached directly: {}",
            bootstrap_.rank(), error.what());
      }
    });
    bool all = true;
    for (const int rank : sharing_) all &= find(rank);
    return all;
  }

  Bootstrap& bootstrap_;
  const std::vector<int>& sharing_;
  Arena* own_ = nullptr;
  std::vector<ArenaName> names_;
  std::vector<Reach::RankArena> by_rank_;
};

}  // namespace

Reach share_arenas(Bootstrap& bootstrap, const std::vector<int>& sharing) {
  return Sharing(bootstrap, sharing).run();
}

}  // namespace rondo::detail
