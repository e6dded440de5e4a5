// A bootstrap of some of the ranks of a communicator, which make a communicator of their own.
// Several such groups may do so at once.
//
// All ranks of the parent make their exchanges in rounds: in each, every rank says how many bytes
// it has for its group, or that it needs no more rounds, and brings them at once if they are few,
// as they mostly are; if some rank has more, all exchange as many bytes as the longest of them. So
// groups need not make the same exchanges, nor as many.
//
// Example: ranks 0 and 1 are a group, rank 2 is alone, and rank 3 in none. The group makes two
// exchanges, of 100 and 8 bytes. Ranks 2 and 3 call leave() at once: their part in these two rounds
// is empty. In the third round ranks 0 and 1 have come to leave(), too, and all return.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <rondo/errors.hpp>

#include "bootstrap/bootstrap.hpp"
#include "communicator/communicator_bootstrap.hpp"

namespace rondo::detail {

// A rank that was to be in the group has failed outside an exchange. The text names it by its
// number in the communicator that is split.
class MemberHasLeft : public TransportError {
 public:
  using TransportError::TransportError;
};

class GroupBootstrap final : public Bootstrap {
 public:
  // `members`: the ranks of the group in `parent`, in the order that they have in the group; empty
  // for a rank in none. `function`: what the program has called.
  GroupBootstrap(Communicator& parent, std::vector<int> members, PartOf function = PartOf::split);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(members_.size()); }
  void all_gather(const void* mine, void* all, std::size_t bytes) override;

  // Collective over the parent's ranks: every rank calls it when it needs no more exchanges,
  // whether they went well or not. Returns when all ranks have. If a rank leaves while others of
  // its group need it, their exchange throws TransportError.
  void leave();

 private:
  // What a rank sends as a round begins.
  struct Contribution {
    std::uint64_t bytes = 0;
    bool leaves = false;
    // All bytes, if they fit; those that together() exchanges do.
    std::array<std::byte, 1088> few{};
  };
  static std::size_t longest(const std::vector<Contribution>& all);
  // Returns what every rank of the parent brings, `bytes` bytes each, by rank. Returns nothing if
  // every rank's bytes fit in its Contribution.
  std::vector<std::byte> exchange_many(const void* mine, std::size_t mine_bytes, std::size_t bytes);

  // Makes a round, by `body`. If this rank cannot end the round, it ends the parent: otherwise the
  // others would take what it brings to the next round for a part of this one.
  template <class Body>
  void in_round(Body body);

  Communicator& ranks_;
  CommunicatorBootstrap parent_;
  std::vector<int> members_;
  int rank_ = 0;
};

}  // namespace rondo::detail
