// A communicator over host memory as a bootstrap, for what its ranks set up together later on.
#pragma once

#include <cstddef>
#include <vector>

#include <rondo/communicator.hpp>

#include "bootstrap/bootstrap.hpp"

namespace rondo::detail {

class CommunicatorBootstrap final : public Bootstrap {
 public:
  explicit CommunicatorBootstrap(Communicator& ranks) : ranks_(ranks) {}

  [[nodiscard]] int rank() const override { return ranks_.rank(); }
  [[nodiscard]] int size() const override { return ranks_.size(); }
  void all_gather(const void* mine, void* all, std::size_t bytes) override {
    Call call;
    call.collective = Collective::all_gather;
    call.in = mine;
    call.out = all;
    call.count = bytes * static_cast<std::size_t>(size());
    call.type = DataType::u8;
    call.options.algorithm = Algorithm::ring;
    ranks_.run(call);
  }

 private:
  Communicator& ranks_;
};

}  // namespace rondo::detail
