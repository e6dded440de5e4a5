// The contracts of FIFOs and messengers for UCX: one process sends to itself.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "net/ucx_messenger.hpp"
#include "tests/fifo/fifo_contract.hpp"
#include "tests/fifo/pump_to_myself.hpp"
#include "tests/net/messenger_contract.hpp"
#include "tests/support/ucx.hpp"

namespace rondo::detail {
namespace {

struct ByUcx {
  [[nodiscard]] std::unique_ptr<Messenger> messenger() const {
    return network->messenger(0, {network->address()}, std::uint64_t{5} << 32U);
  }
  std::unique_ptr<UcxNetwork> network = open_ucx("lo");
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Ucx, FifoContract, test::PumpToMyself<ByUcx>);
INSTANTIATE_TYPED_TEST_SUITE_P(Ucx, MessengerContract, ByUcx);

}  // namespace rondo::detail

int main(int argc, char** argv) {
  if (const char* reason = rondo::test::reason_against_ucx()) {
    std::printf("skipped: %s\n", reason);
    return 77;
  }
  ::setenv("UCX_MEM_EVENTS", "no", 1);  // address sanitizers do not endure what UCX does to mmap
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
