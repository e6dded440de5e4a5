// A bootstrap that exchanges by a communicator over host memory, whose ranks set up more together.
#pragma once

#include <cstddef>
#include <vector>

#include <rondo/communicator.hpp>

#include "bootstrap/bootstrap.hpp"

namespace rondo::detail {

class CommunicatorBootstrap final : public Bootstrap {
 public:
  // `part_of`: what its exchanges are for, as errors name it.
  CommunicatorBootstrap(Communicator& ranks, PartOf part_of) : ranks_(ranks), part_of_(part_of) {}

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
    call.part_of = part_of_;
    ranks_.run(call);
  }

 private:
  Communicator& ranks_;
  PartOf part_of_;
};

}  // namespace rondo::detail
