// Gradients in device memory. Runs on the stand-in everywhere, and, linked with the CUDA runtime,
// on a GPU.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/cuda_gradient_reducer.hpp>

#include "tests/cuda/device_buffer.hpp"
#include "tests/gradient/toy_model.hpp"
#include "tests/support/errors.hpp"

namespace rondo::test {
namespace {

namespace api = detail::gpu::api;

void on_ranks(int ranks, const std::function<void(cuda::Communicator&)>& body) {
  std::vector<cuda::Communicator> group = cuda::local_group(spread(ranks));
  std::vector<std::exception_ptr> errors(group.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < group.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        const detail::gpu::DeviceScope scope(group[i].device());
        body(group[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

GradientOptions small_buckets(Average average = Average::sum) {
  GradientOptions options;
  options.bucket_bytes = 2_KiB;
  options.average = average;
  return options;
}

// Gradients on a device, and what backprop would write there.
template <class T>
class DeviceModel {
 public:
  explicit DeviceModel(int device, std::vector<std::size_t> sizes = kToySizes)
      : device_(device),
        counts_(std::move(sizes)),
        even_filler_(device, 1U << 20U, 0),
        odd_filler_(device, 1U << 20U, 0) {
    for (const std::size_t count : counts_) {
      gradients_.push_back(std::make_unique<DeviceBuffer<T>>(device, count, T(77)));
      produced_.push_back(std::make_unique<DeviceBuffer<T>>(device, count, T(66)));
    }
  }
  [[nodiscard]] std::size_t size() const { return counts_.size(); }
  [[nodiscard]] std::vector<Parameter> parameters() const {
    std::vector<Parameter> result;
    for (std::size_t i = 0; i < size(); ++i) {
      result.push_back(Parameter::gradient_only(ToyModel<T>::label(i), gradients_[i]->span()));
    }
    return result;
  }
  void prepare(int rank, double factor = 1) {
    for (std::size_t i = 0; i < size(); ++i) {
      std::vector<T> values;
      for (std::size_t e = 0; e < counts_[i]; ++e) {
        values.push_back(exact::from_double<T>(gradient_value(rank, i, e) * factor));
      }
      produced_[i]->write(values);
    }
  }
  // Writes the gradient late, as a slow kernel would: a read that comes too early finds the old
  // values.
  void produce(std::size_t i, api::Stream stream, void* to = nullptr) {
    // Even and odd parameters may be on different streams, so each kind has its own filler.
    const std::span<int> filler = (i % 2 == 0 ? even_filler_ : odd_filler_).span();
    api::copy_async(filler.data(), filler.data() + filler.size() / 2, filler.size_bytes() / 2,
                    stream);
    if (counts_[i] == 0) return;
    api::copy_async(to != nullptr ? to : gradients_[i]->span().data(), produced_[i]->span().data(),
                    counts_[i] * sizeof(T), stream);
  }
  void expect_all(int ranks, double factor = 1) const {
    for (std::size_t i = 0; i < size(); ++i) {
      const std::vector<T> values = gradients_[i]->read();
      expect_sums<T>(std::span<const T>(values), ranks, i, factor);
    }
  }
  [[nodiscard]] std::vector<T> read(std::size_t i) const { return gradients_[i]->read(); }

 private:
  int device_;
  std::vector<std::size_t> counts_;
  DeviceBuffer<int> even_filler_;
  DeviceBuffer<int> odd_filler_;
  std::vector<std::unique_ptr<DeviceBuffer<T>>> gradients_;
  std::vector<std::unique_ptr<DeviceBuffer<T>>> produced_;
};

class DeviceReducers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device: " << cuda::why_no_device();
  }
};

class DeviceGradients : public DeviceReducers, public ::testing::WithParamInterface<int> {
 protected:
  [[nodiscard]] static int ranks() { return GetParam(); }
};

template <class T>
void check_type(int ranks, const GradientOptions& options, double factor) {
  on_ranks(ranks, [&](cuda::Communicator& comm) {
    DeviceModel<T> model(comm.device());
    const DeviceStream stream(comm.device());
    cuda::GradientReducer reducer(comm, model.parameters(), options);
    for (int iteration = 0; iteration < 3; ++iteration) {
      model.prepare(comm.rank());
      if (options.average == Average::samples) reducer.set_samples(1);
      for (std::size_t i = model.size(); i-- > 0;) {
        model.produce(i, stream.get());
        reducer.mark_ready(i, stream.get());
      }
      reducer.finish(stream.get());
      comm.wait(stream.get());
      model.expect_all(comm.size(), factor);
    }
  });
}

// All ranks get the same error, and the communicator still works.
TEST_P(DeviceGradients, OfMoreStreamsThanConnectionsAreRefused) {
  if (ranks() * 3 <= 8) return;
  on_ranks(ranks(), [](cuda::Communicator& comm) {
    DeviceModel<float> model(comm.device());
    comm.host().barrier();
    if (comm.rank() == 0) ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 1);
    comm.host().barrier();
    const int here = (comm.size() + cuda::device_count() - 1) / cuda::device_count();
    try {
      const cuda::GradientReducer reducer(comm, model.parameters(), small_buckets());
      EXPECT_LE(here * 3, 8);
    } catch (const UsageError& error) {
      EXPECT_NE(std::string_view(error.what()).find("CUDA_DEVICE_MAX_CONNECTIONS"),
                std::string_view::npos);
    }
    comm.host().barrier();
    if (comm.rank() == 0) ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    comm.host().barrier();
    const cuda::GradientReducer reducer(comm, model.parameters(), small_buckets());
  });
}

TEST_P(DeviceGradients, OfEveryTypeAreSummedOrAveraged) {
  check_type<float>(ranks(), small_buckets(), 1);
  check_type<double>(ranks(), small_buckets(), 1);
  check_type<Float16>(ranks(), small_buckets(), 1);
  check_type<BFloat16>(ranks(), small_buckets(), 1);
  check_type<float>(ranks(), small_buckets(Average::ranks), 1.0 / ranks());
}

TEST_P(DeviceGradients, TravelNarrowAlignedAndScaled) {
  GradientOptions options = small_buckets();
  for (const WireType wire : {WireType::bf16, WireType::f16}) {
    options.wire = wire;
    check_type<float>(ranks(), options, 1);
  }
  options = small_buckets();
  options.layout_independent = true;
  check_type<float>(ranks(), options, 1);
  if (ranks() == 3) return;  // thirds are not exact
  check_type<float>(ranks(), small_buckets(Average::samples), 1.0 / ranks());
}

// Gradients come from two streams at once, in a different order on each rank; then buckets follow
// rank 0's order.
TEST_P(DeviceGradients, FollowTheEventsOfSeveralStreams) {
  on_ranks(ranks(), [](cuda::Communicator& comm) {
    DeviceModel<float> model(comm.device(), std::vector<std::size_t>(12, 200));
    const DeviceStream first(comm.device());
    const DeviceStream second(comm.device());
    cuda::GradientReducer reducer(comm, model.parameters(), small_buckets());
    std::mt19937 random(static_cast<unsigned>(comm.rank()));
    std::vector<std::size_t> order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    for (int iteration = 0; iteration < 6; ++iteration) {
      model.prepare(comm.rank(), iteration + 1);
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) {
        const DeviceStream& stream = i % 2 == 0 ? first : second;
        model.produce(i, stream.get());
        reducer.mark_ready(i, stream.get());
      }
      reducer.finish(first.get());
      comm.wait(first.get());
      comm.wait(second.get());
      model.expect_all(comm.size(), iteration + 1);
      EXPECT_EQ(reducer.statistics().arrival.size(), model.size());
    }
  });
}

TEST_P(DeviceGradients, OfTheReducersOwnMoveOnce) {
  on_ranks(ranks(), [](cuda::Communicator& comm) {
    DeviceModel<float> model(comm.device());
    const DeviceStream stream(comm.device());
    std::vector<Parameter> parameters;
    for (std::size_t i = 0; i < kToySizes.size(); ++i) {
      parameters.push_back(
          Parameter::owned_gradient_only<float>(ToyModel<float>::label(i), kToySizes[i]));
    }
    cuda::GradientReducer reducer(comm, parameters, small_buckets());
    model.prepare(comm.rank());
    for (int iteration = 0; iteration < 3; ++iteration) {
      EXPECT_EQ(reducer.layout(), iteration == 0 ? 0 : 1);
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        model.produce(i, stream.get(), reducer.gradient<float>(i).data());
        reducer.mark_ready(i, stream.get());
      }
      reducer.finish(stream.get());
      comm.wait(stream.get());
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        std::vector<float> values(kToySizes[i]);
        if (values.empty()) continue;
        api::copy(values.data(), reducer.gradient<float>(i).data(), values.size() * sizeof(float));
        expect_sums<float>(std::span<const float>(values), comm.size(), i);
      }
    }
  });
}

TEST_P(DeviceGradients, AreCapturedAndReplayed) {
  on_ranks(ranks(), [](cuda::Communicator& comm) {
    DeviceModel<float> model(comm.device());
    const DeviceStream stream(comm.device());
    cuda::GradientReducer reducer(comm, model.parameters(), small_buckets(Average::ranks));
    api::begin_capture(stream.get());
    for (std::size_t i = model.size(); i-- > 0;) {
      model.produce(i, stream.get());
      reducer.mark_ready(i, stream.get());
    }
    reducer.finish(stream.get());
    const api::Graph graph = api::end_capture(stream.get());
    for (int replay = 1; replay <= 4; ++replay) {
      model.prepare(comm.rank(), replay);
      comm.host().barrier();
      api::launch(graph, stream.get());
      comm.wait(stream.get());
      model.expect_all(comm.size(), static_cast<double>(replay) / comm.size());
    }
    comm.host().barrier();
    api::destroy(graph);
  });
}

TEST_P(DeviceGradients, ThatNobodyMarkedAreZerosWhenAllowed) {
  on_ranks(ranks(), [](cuda::Communicator& comm) {
    DeviceModel<float> model(comm.device());
    const DeviceStream stream(comm.device());
    GradientOptions options = small_buckets();
    options.allow_unused = true;
    cuda::GradientReducer reducer(comm, model.parameters(), options);
    model.prepare(comm.rank());
    for (std::size_t i = 0; i < model.size(); ++i) {
      model.produce(i, stream.get());
      if (i != 4) reducer.mark_ready(i, stream.get());
    }
    reducer.finish(stream.get());
    comm.wait(stream.get());
    for (const float value : model.read(4)) ASSERT_EQ(value, 0);
    expect_sums<float>(std::span<const float>(model.read(2)), comm.size(), 2);
  });
}

// Runs `wrong` on the last rank: all ranks must get an error that contains `words`, and no rank
// waits for the last.
void expect_named_everywhere(
    int ranks, const std::string& words,
    const std::function<void(cuda::GradientReducer&, api::Stream)>& wrong) {
  std::vector<std::string> texts(static_cast<std::size_t>(ranks));
  on_ranks(ranks, [&](cuda::Communicator& comm) {
    DeviceModel<float> model(comm.device());
    const DeviceStream stream(comm.device());
    std::string& text = texts[static_cast<std::size_t>(comm.rank())];
    const bool last = comm.rank() == comm.size() - 1;
    try {
      cuda::GradientReducer reducer(comm, model.parameters(), small_buckets());
      comm.host().barrier();
      if (last) {
        wrong(reducer, stream.get());
      } else {
        for (std::size_t i = 0; i < model.size(); ++i) reducer.mark_ready(i, stream.get());
      }
      reducer.finish(stream.get());
      comm.wait(stream.get());
    } catch (const UsageError& error) {
      EXPECT_TRUE(last);
      text = error.what();
    } catch (const PeerError& error) {
      EXPECT_FALSE(last);
      text = error.what();
    }
  });
  for (const std::string& text : texts) EXPECT_NE(text.find(words), std::string::npos) << text;
}

TEST_P(DeviceGradients, MarkedTwiceOrNotAtAllAreNamedOnEveryRank) {
  expect_named_everywhere(ranks(), "parameter 3 ('p3') was marked before",
                          [](cuda::GradientReducer& reducer, api::Stream stream) {
                            reducer.mark_ready(3, stream);
                            reducer.mark_ready(3, stream);
                          });
  expect_named_everywhere(ranks(), "parameter 8 ('p8') was not marked",
                          [](cuda::GradientReducer& reducer, api::Stream stream) {
                            for (std::size_t i = 0; i < 8; ++i) reducer.mark_ready(i, stream);
                          });
  expect_named_everywhere(
      ranks(), "no parameter 99",
      [](cuda::GradientReducer& reducer, api::Stream stream) { reducer.mark_ready(99, stream); });
}

TEST_P(DeviceGradients, MadeWronglyAreAnErrorOfAll) {
  on_ranks(ranks(), [](cuda::Communicator& comm) {
    const bool last = comm.rank() == comm.size() - 1;
    DeviceModel<float> model(comm.device(), {10, last ? 21U : 20U});
    const auto text_of = [&](const GradientOptions& options) {
      try {
        const cuda::GradientReducer reducer(comm, model.parameters(), options);
      } catch (const UsageError& error) {
        return std::string(error.what());
      }
      return std::string("no error");
    };
    if (comm.size() > 1) {
      EXPECT_NE(text_of(small_buckets()).find("parameter 1 'p1' of 21 f32"), std::string::npos);
    }
    GradientOptions traced = small_buckets();
    traced.trace = last;
    EXPECT_NE(text_of(traced).find("trace is for host memory"), std::string::npos);
  });
}

// All ranks get the same error before any gradient has moved, and the communicator still works.
TEST_P(DeviceGradients, ByOneShotAreRefusedWhereABucketMayOutgrowIt) {
  on_ranks(ranks(), [](cuda::Communicator& comm) {
    DeviceModel<float> model(comm.device(), {400'000, 400'000, 400'000});
    GradientOptions options;
    options.algorithm = Algorithm::one_shot;
    options.bucket_bytes = 4'800'000;
    options.first_bucket_bytes = 1;
    std::string text;
    try {
      const cuda::GradientReducer reducer(comm, model.parameters(), options);
    } catch (const UsageError& error) {
      text = error.what();
    }
    const char* const expected = comm.size() == 1 ? "one_shot cannot be used" : "one_shot carries";
    EXPECT_NE(text.find(expected), std::string::npos) << text;
    EXPECT_NE(text.find("buckets of up to 4800000 bytes"), std::string::npos) << text;
    const cuda::GradientReducer reducer(comm, model.parameters(), small_buckets());
  });
}

TEST_P(DeviceGradients, ThrowWhatEndedTheCommunicatorFromSetSamplesToo) {
  on_ranks(ranks(), [](cuda::Communicator& comm) {
    DeviceModel<float> model(comm.device());
    cuda::GradientReducer reducer(comm, model.parameters(), small_buckets(Average::samples));
    comm.abort("enough");
    EXPECT_THROW(reducer.set_samples(1), PeerError);
  });
}

TEST_P(DeviceGradients, WithoutElementsMayHaveABucketOfTheirOwn) {
  on_ranks(ranks(), [](cuda::Communicator& comm) {
    const DeviceStream stream(comm.device());
    const DeviceBuffer<float> gradient(comm.device(), 100, 1.0F);
    cuda::GradientReducer reducer(
        comm,
        {Parameter::owned_gradient_only<float>("none", 0),
         Parameter::gradient_only("some", gradient.span())},
        {.bucket_bytes = 1, .average = Average::sum, .wire = WireType::bf16});
    for (int iteration = 0; iteration < 2; ++iteration) {
      for (const std::size_t i : {1U, 0U}) reducer.mark_ready(i, stream.get());
      reducer.finish(stream.get());
      comm.wait(stream.get());
    }
    const auto sum = static_cast<float>(comm.size() * comm.size());
    for (const float element : gradient.read()) ASSERT_EQ(element, sum);
  });
}

TEST_P(DeviceGradients, ChooseTheirBucketSizeAndTakeRankZerosValues) {
  on_ranks(ranks(), [](cuda::Communicator& comm) {
    const DeviceStream stream(comm.device());
    DeviceBuffer<float> gradient(comm.device(), 500, 1.0F);
    DeviceBuffer<float> value(comm.device(), 500, static_cast<float>(comm.rank() + 5));
    cuda::GradientReducer reducer(comm, {{"w", gradient.span(), value.span()}});
    EXPECT_GE(reducer.bucket_bytes(), 8_KiB);
    for (const float element : value.read()) ASSERT_EQ(element, 5);
    reducer.mark_ready(0, stream.get());
    reducer.finish(stream.get());
    comm.wait(stream.get());
    for (const float element : gradient.read()) ASSERT_EQ(element, 1);
  });
}

TEST_P(DeviceGradients, CompareValuesThatMayNotBeWritten) {
  on_ranks(ranks(), [](cuda::Communicator& comm) {
    const bool last = comm.rank() == comm.size() - 1;
    DeviceBuffer<float> gradient(comm.device(), 501, 1.0F);
    std::vector<float> values(501, 7.0F);
    values[500] = last ? -7.0F : 7.0F;
    DeviceBuffer<float> value(comm.device(), 501, 7.0F);
    value.write(values);
    const std::span<const float> compared = value.span();
    const auto make = [&] {
      const cuda::GradientReducer reducer(comm, {{"w", gradient.span(), compared}});
    };
    if (comm.size() == 1) return make();
    EXPECT_NE(usage_error(make).find("parameter 0 'w' of 501 f32, with values to compare"),
              std::string::npos);
  });
}

// In an iteration the reducer has the communicator to itself; it goes on when the program's object
// is moved or destroyed.
TEST_P(DeviceGradients, OwnTheirCommunicatorToo) {
  on_ranks(ranks(), [](cuda::Communicator& comm) {
    const DeviceStream stream(comm.device());
    DeviceBuffer<float> gradient(comm.device(), 500, 1.0F);
    DeviceBuffer<float> other(comm.device(), 500, 1.0F);
    std::optional<cuda::Communicator> mine(comm.duplicate());
    cuda::GradientReducer reducer(*mine, {Parameter::gradient_only("w", gradient.span())});
    cuda::GradientReducer second(*mine, {Parameter::gradient_only("w", gradient.span())});
    reducer.mark_ready(0, stream.get());
    const std::string text = usage_error([&] { mine->all_reduce(other.span(), stream.get()); });
    EXPECT_NE(text.find("all_reduce: a gradient reducer has this communicator to itself"),
              std::string::npos)
        << text;
    EXPECT_NE(
        usage_error([&] { second.mark_ready(0, stream.get()); }).find("another gradient reducer"),
        std::string::npos);
    const cuda::Communicator moved = *std::exchange(mine, std::nullopt);
    reducer.finish(stream.get());
    second.mark_ready(0, stream.get());
    second.finish(stream.get());
    comm.wait(stream.get());
    for (const float element : gradient.read()) ASSERT_EQ(element, 1);
  });
}

// Buckets of 50 gradients, so that the bound on calls alone would let rank 0 mark all of them.
TEST_F(DeviceReducers, TakeMarksAheadOfTheDeviceInABoundedNumber) {
  constexpr std::size_t kGradients = 1000;
  constexpr std::size_t kElems = 4;
  constexpr std::size_t kApart = 2 * kElems;  // gradients that touch would be packed as one
  GradientOptions options;
  options.bucket_bytes = 50 * kElems * sizeof(float);
  options.average = Average::sum;
  std::atomic<int> made_by_zero = 0;
  std::atomic<int> made_by_one = 0;
  std::atomic<int> most_ahead = 0;
  on_ranks(2, [&](cuda::Communicator& comm) {
    const bool zero = comm.rank() == 0;
    const DeviceStream stream(comm.device());
    const DeviceBuffer<float> all(comm.device(), kGradients * kApart, 1.0F);
    std::vector<Parameter> parameters;
    for (std::size_t i = 0; i < kGradients; ++i) {
      parameters.push_back(Parameter::gradient_only("p" + std::to_string(i),
                                                    all.span().subspan(i * kApart, kElems)));
    }
    cuda::GradientReducer reducer(comm, parameters, options);
    // Rank 0 makes 149 marks alone. Its 150th completes a bucket, and waits for an earlier one that
    // also needs rank 1.
    while (!zero && made_by_zero < 149) std::this_thread::yield();
    for (std::size_t i = kGradients; i-- > 0;) {
      reducer.mark_ready(i, stream.get());
      if (zero) most_ahead = std::max(most_ahead.load(), made_by_zero - made_by_one);
      ++(zero ? made_by_zero : made_by_one);
    }
    reducer.finish(stream.get());
    comm.wait(stream.get());
    const std::vector<float> sums = all.read();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(sums[i], i % kApart < kElems ? 2 : 1) << i;
    }
  });
  EXPECT_LE(most_ahead, 250);
  EXPECT_GE(most_ahead, 148);
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceGradients, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace rondo::test
