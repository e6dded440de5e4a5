// The ranks' communicator over host memory, as a bootstrap: it exchanges blobs.
#pragma once

#include <cstddef>
#include <vector>

#include <rondo/communicator.hpp>

#include "bootstrap/bootstrap.hpp"

namespace rondo::detail::gpu {

class HostBootstrap final : public Bootstrap {
 public:
  explicit HostBootstrap(rondo::Communicator& host) : host_(host) {}

  [[nodiscard]] int rank() const override { return host_.rank(); }
  [[nodiscard]] int size() const override { return host_.size(); }
  void all_gather(const void* mine, void* all, std::size_t bytes) override {
    Call call;
    call.collective = Collective::all_gather;
    call.in = mine;
    call.out = all;
    call.count = bytes * static_cast<std::size_t>(size());
    call.type = DataType::u8;
    call.options.algorithm = Algorithm::ring;
    host_.run(call);
  }

 private:
  rondo::Communicator& host_;
};

// Rows of values, one for each pair of ranks. Collective.
template <class T>
std::vector<std::vector<T>> exchange_rows(Bootstrap& bootstrap, const std::vector<T>& mine) {
  const auto n = static_cast<std::size_t>(bootstrap.size());
  std::vector<T> flat(n * n);
  bootstrap.all_gather(mine.data(), flat.data(), n * sizeof(T));
  std::vector<std::vector<T>> rows;
  for (std::size_t i = 0; i < n; ++i) {
    rows.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(i * n),
                      flat.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
  }
  return rows;
}

}  // namespace rondo::detail::gpu
