// Calls that are prepared once and made many times; and many buffers in one call.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace rondo::test {
namespace {

int sum_of_ranks(int size) { return size * (size - 1) / 2; }

TEST(PersistentCall, IsMadeManyTimes) {
  run_ranks(3, {}, [](Communicator& comm) {
    for (const std::size_t count : {1U, 1000U, 100'000U}) {
      std::vector<int> in(count);
      std::vector<int> out(count);
      PersistentCall call = comm.prepare(comm.builder().all_reduce(in, out));
      for (int round = 0; round < 50; ++round) {
        for (std::size_t i = 0; i < count; ++i) in[i] = comm.rank() + round * static_cast<int>(i);
        if (round % 2 == 0) {
          call.run();
        } else {
          call.start().wait();
        }
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(out[i], sum_of_ranks(3) + 3 * round * static_cast<int>(i)) << round;
        }
      }
    }
  });
}

TEST(PersistentCall, OwnsItsCountsAndItsReduction) {
  run_ranks(2, {}, [](Communicator& comm) {
    std::vector<int> whole = {1, 2, 3, 4};
    std::vector<int> own(comm.rank() == 0 ? 1 : 3);
    std::optional<PersistentCall> call;
    {
      std::vector<std::size_t> counts = {1, 3};
      UserReduction product = reduction_of<int>([](const int& a, const int& b) { return a * b; });
      call = comm.prepare(comm.builder().reduce_scatter_v(std::as_bytes(std::span(whole)),
                                                          std::as_writable_bytes(std::span(own)),
                                                          counts, product, {}));
      counts = {4, 0};
      product.combine = nullptr;
    }
    call->run();
    EXPECT_EQ(own, comm.rank() == 0 ? std::vector<int>{1} : (std::vector<int>{4, 9, 16}));
  });
}

TEST(PersistentCall, IsCheckedWhenPrepared) {
  run_ranks(2, {}, [](Communicator& comm) {
    Call call;
    call.collective = Collective::all_reduce;
    call.count = 5;
    EXPECT_NE(usage_error([&] { const PersistentCall made = comm.prepare(call); }).find("is null"),
              std::string::npos);
  });
}

// Buffers of many sizes, empty ones too.
std::vector<std::vector<float>> buffers_of(int rank, int round) {
  std::vector<std::vector<float>> buffers;
  for (std::size_t i = 0; i < 40; ++i) {
    buffers.emplace_back(i * i % 97);
    for (std::size_t e = 0; e < buffers.back().size(); ++e) {
      buffers.back()[e] = static_cast<float>(1000 * i + e + static_cast<std::size_t>(rank + round));
    }
  }
  return buffers;
}

TEST(Coalesced, ManyBuffersAreSummedTogether) {
  run_ranks(3, {}, [](Communicator& comm) {
    for (int round = 0; round < 10; ++round) {
      std::vector<std::vector<float>> buffers = buffers_of(comm.rank(), round);
      if (round % 2 == 0) {
        comm.all_reduce_coalesced(buffers);
      } else {
        const Work work = comm.all_reduce_coalesced_async(buffers, ReduceOp::avg);
        work.wait();
      }
      const float ranks = round % 2 == 0 ? 3 : 1;
      const std::vector<std::vector<float>> middle = buffers_of(1, round);
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        for (std::size_t e = 0; e < buffers[i].size(); ++e) {
          ASSERT_EQ(buffers[i][e], ranks * middle[i][e]) << "buffer " << i << ", element " << e;
        }
      }
    }
    std::vector<std::vector<float>> none;
    comm.all_reduce_coalesced(none);
  });
}

TEST(Coalesced, OtherSizesAreAMismatch) {
  std::vector<std::string> errors(2);
  run_ranks(2, {}, [&](Communicator& comm) {
    std::vector<std::vector<float>> buffers = {std::vector<float>(3), std::vector<float>(5)};
    if (comm.rank() == 1) std::swap(buffers[0], buffers[1]);
    try {
      comm.all_reduce_coalesced(buffers);
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(comm.rank())] = error.what();
    }
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("all_reduce_coalesced(8 x f32, sum, sizes with checksum"),
              std::string::npos)
        << error;
  }
}

TEST(Coalesced, ABufferThatIsNullIsRefused) {
  run_ranks(2, {}, [](Communicator& comm) {
    const std::string text = usage_error([&] {
      comm.run_coalesced({{nullptr, 0}, {nullptr, 3}}, DataType::f32, ReduceOp::sum, {});
    });
    EXPECT_NE(text.find("all_reduce_coalesced: buffer 1 is null, but has 3 elements"),
              std::string::npos)
        << text;
    EXPECT_NE(usage_error([&] {
                comm.run_coalesced({}, DataType::i32, ReduceOp::avg, {});
              }).find("avg is not defined for i32"),
              std::string::npos);
  });
}

}  // namespace
}  // namespace rondo::test
