#include "bootstrap/release.hpp"

#include <array>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/put.hpp"

namespace rondo::detail {
namespace {

// Has 64 bytes in every release, past and future.
struct Release {
  std::array<char, 8> magic = {'r', 'o', 'n', 'd', 'o', 'r', 'e', 'l'};
  std::array<char, 56> text{};
};
static_assert(sizeof(Release) == 64);

std::string text_of(Release release) {
  if (release.magic != Release().magic)
    return "something else than Rondo, or a release before 0.1.0";
  release.text.back() = '\0';
  return fmt::format("Rondo {}", release.text.data());
}

}  // namespace

void require_one_release(Bootstrap& bootstrap) {
  Release mine;
  put(mine.text, kRelease);
  const std::vector<Release> all = bootstrap.exchange(mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank].magic == all[0].magic && all[rank].text == all[0].text) continue;
    throw UsageError(
        fmt::format("rank 0 is {}, and rank {} is {}; start all ranks with one release of Rondo",
                    text_of(all[0]), rank, text_of(all[rank])));
  }
}

}  // namespace rondo::detail
