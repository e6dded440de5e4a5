#include "bootstrap/share_memory.hpp"

#include <array>

#include <rondo/errors.hpp>

#include "base/put.hpp"
#include "bootstrap/together.hpp"

namespace rondo::detail {
namespace {

struct Offer {  // from leaders
  std::array<char, 64> name{};
};

struct Answer {  // from every rank
  bool mapped = false;
  std::array<char, 256> reason{};
};

}  // namespace

SharedMemory share_memory(Bootstrap& bootstrap, int leader, bool wanted, std::size_t bytes) {
  NamedMapping mine;
  Offer offer;
  together(bootstrap, [&] {
    if (!wanted || leader != bootstrap.rank()) return;
    mine = create_shared(bytes);
    put(offer.name, mine.name.text());
  });
  const std::vector<Offer> offers = bootstrap.exchange(offer);
  Answer answer;
  try {
    if (wanted && mine.mapping.data() == nullptr) {
      mine.mapping = open_shared(offers[static_cast<std::size_t>(leader)].name.data(), bytes);
    }
    answer.mapped = wanted;
  } catch (const TransportError& failure) {
    put(answer.reason, failure.what());
  }
  SharedMemory result;
  for (const Answer& one : bootstrap.exchange(answer)) {
    result.mapped.push_back(one.mapped);
    result.reasons.emplace_back(one.reason.data());
  }
  result.mapping = std::move(mine.mapping);
  return result;
}

}  // namespace rondo::detail
