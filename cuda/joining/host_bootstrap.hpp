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

}  // namespace rondo::detail::gpu
