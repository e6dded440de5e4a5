#include "bootstrap/share_memory.hpp"

#include <rondo/errors.hpp>

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
  std::string error;
  if (wanted && leader == bootstrap.rank()) {
    try {
      mine = create_shared(bytes);
      put(offer.name, mine.name.text());
    } catch (const TransportError& failure) {
      error = failure.what();
    }
  }
  agree<TransportError>(bootstrap, error);
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
