#include "bootstrap/together.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/put.hpp"

namespace rondo::detail {
namespace {

enum class Kind : std::uint8_t { none, usage, cuda, transport };

struct Report {
  Kind kind = Kind::none;
  std::array<char, 1023> text{};
};

Report report_of(const std::exception_ptr& error) {
  Report report;
  if (error == nullptr) return report;
  try {
    std::rethrow_exception(error);
  } catch (const UsageError& failure) {
    report.kind = Kind::usage;
    put(report.text, failure.what());
  } catch (const CudaError& failure) {
    report.kind = Kind::cuda;
    put(report.text, failure.what());
  } catch (const std::exception& failure) {
    report.kind = Kind::transport;
    put(report.text, failure.what());
  }
  return report;
}

}  // namespace

void agree(Bootstrap& bootstrap, const std::exception_ptr& error) {
  const std::vector<Report> all = bootstrap.exchange(report_of(error));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].kind == Kind::none) continue;
    const std::string text = fmt::format("rank {}: {}", rank, all[rank].text.data());
    if (all[rank].kind == Kind::usage) throw UsageError(text);
    if (all[rank].kind == Kind::cuda) throw CudaError(text);
    throw TransportError(text);
  }
}

}  // namespace rondo::detail
