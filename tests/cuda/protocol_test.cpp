// The device protocol, run by host threads: one for each thread of a block, of each channel of each
// rank. They run freely, also under the thread sanitizer, or one at a time in an order drawn from a
// seed.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/collective_traits.hpp"
#include "bench/exact_values.hpp"
#include "cuda/protocol/fold.hpp"
#include "reduce/dispatch.hpp"
#include "tests/cuda/host_block.hpp"
#include "tests/cuda/interleaver.hpp"
#include "tests/cuda/protocol_group.hpp"
#include "tests/support/collective_checks.hpp"
#include "tests/support/large_values.hpp"

namespace rondo::test {
namespace {

using detail::gpu::FailureKind;
using detail::gpu::KernelFailure;

struct Spec {
  Collective collective = Collective::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;
  int root = 0;
  bool in_place = false;
  std::size_t shift = 0;           // elements by which buffers miss a 16-byte border
  std::set<int> unreachable = {};  // ranks whose buffers the others cannot reach
  bool large = false;  // an average of 16-bit floats, whose sum is more than the type holds
};

// One rank's buffers for one call, and what must be in them afterwards.
class RankCall {
 public:
  RankCall(const Spec& spec, int rank, int size)
      : spec_(spec),
        rank_(rank),
        size_(size),
        own_(chunk_range(spec.count, static_cast<std::uint64_t>(size),
                         static_cast<std::uint64_t>(rank))) {
    detail::with_type(spec.type, [&](auto tag) { fill<typename decltype(tag)::Type>(); });
  }

  [[nodiscard]] Call call() {
    Call call;
    call.collective = spec_.collective;
    call.count = spec_.count;
    call.type = spec_.type;
    call.op = spec_.op;
    call.root = spec_.root;
    std::byte* whole_out = at(spec_.in_place ? in_ : out_, 0);
    call.in = at(in_, has_own_input() ? own_.offset : 0);
    call.out = whole_out + (has_own_output() ? own_.offset * size_of(spec_.type) : 0);
    // A shift round the ranks.
    call.to = (rank_ + 1) % size_;
    call.from = (rank_ + size_ - 1) % size_;
    call.received = spec_.count;
    return call;
  }

  void scribble() {
    for (auto* buffer : {&in_, &out_}) std::memset(buffer->data(), 0xA5, bytes(*buffer));
  }
  [[nodiscard]] bool still_scribbled() const {
    const auto scribbled = [](std::byte byte) { return byte == std::byte{0xA5}; };
    return std::all_of(begin(in_), begin(in_) + bytes(in_), scribbled) &&
           std::all_of(begin(out_), begin(out_) + bytes(out_), scribbled);
  }
  [[nodiscard]] bool untouched() const {
    return std::equal(begin(in_), begin(in_) + bytes(in_), begin(before_)) &&
           std::all_of(begin(out_), begin(out_) + bytes(out_),
                       [](std::byte byte) { return byte == std::byte{0}; });
  }

  [[nodiscard]] std::size_t wrong() {
    Range checked{0, spec_.count};
    if (has_own_output()) checked = own_;
    const bool root_only =
        spec_.collective == Collective::reduce || spec_.collective == Collective::gather;
    if (root_only && rank_ != spec_.root) checked = {0, 0};
    const std::size_t element = size_of(spec_.type);
    const std::byte* actual = at(spec_.in_place ? in_ : out_, 0);
    std::size_t count = 0;
    for (std::size_t i = checked.offset; i < checked.offset + checked.count; ++i) {
      count += std::memcmp(actual + i * element, at(expected_, i), element) == 0 ? 0 : 1;
    }
    return count;
  }

 private:
  struct alignas(16) Line {
    std::byte bytes[16];
  };

  [[nodiscard]] bool has_own_input() const {
    return spec_.collective == Collective::all_gather || spec_.collective == Collective::gather;
  }
  [[nodiscard]] bool has_own_output() const {
    return spec_.collective == Collective::reduce_scatter ||
           spec_.collective == Collective::scatter;
  }
  // Element i of the result, where every rank has other inputs and none are reduced.
  template <class T>
  [[nodiscard]] T exchanged(std::size_t i) const {
    int from = spec_.root;
    std::size_t element = i;
    if (spec_.collective == Collective::sendrecv) from = (rank_ + size_ - 1) % size_;
    if (spec_.collective == Collective::gather || spec_.collective == Collective::all_to_all) {
      from = static_cast<int>(i / own_.count);
    }
    if (spec_.collective == Collective::all_to_all) element = own_.offset + i % own_.count;
    return exact::input<T>(spec_.op, from, size_, element);
  }

  template <class T>
  void fill() {
    const bool exchanges = detail::goes_pairwise(spec_.collective);
    const bool reduces = spec_.collective == Collective::all_reduce ||
                         spec_.collective == Collective::reduce_scatter ||
                         spec_.collective == Collective::reduce;
    const bool knows_all = spec_.collective == Collective::broadcast && rank_ == spec_.root;
    for (auto* buffer : {&in_, &out_, &expected_}) {
      buffer->resize((spec_.count + spec_.shift) * sizeof(T) / sizeof(Line) + 1);
    }
    for (std::size_t i = 0; i < spec_.count; ++i) {
      const T result = exchanges ? exchanged<T>(i) : exact::result<T>(spec_.op, size_, i);
      if constexpr (detail::kSumsAsParts<T>) {
        if (spec_.large) {
          const T own = large_value<T>(i, rank_);
          const T average = large_value<T>(i, (size_ - 1) / 2.0);
          std::memcpy(at(in_, i), &own, sizeof(T));
          std::memcpy(at(expected_, i), &average, sizeof(T));
          continue;
        }
      }
      const bool mine = i >= own_.offset && i < own_.offset + own_.count;
      T input = exact::from_double<T>(77);
      if (reduces || exchanges) input = exact::input<T>(spec_.op, rank_, size_, i);
      if (knows_all || (spec_.collective == Collective::all_gather && mine)) input = result;
      std::memcpy(at(in_, i), &input, sizeof(T));
      std::memcpy(at(expected_, i), &result, sizeof(T));
    }
    before_ = in_;
  }
  static const std::byte* begin(const std::vector<Line>& buffer) {
    return reinterpret_cast<const std::byte*>(buffer.data());
  }
  static std::size_t bytes(const std::vector<Line>& buffer) { return buffer.size() * sizeof(Line); }
  std::byte* at(std::vector<Line>& buffer, std::size_t index) {
    return reinterpret_cast<std::byte*>(buffer.data()) +
           (index + spec_.shift) * size_of(spec_.type);
  }

  Spec spec_;
  int rank_;
  int size_;
  Range own_;
  std::vector<Line> in_;
  std::vector<Line> out_;
  std::vector<Line> expected_;
  std::vector<Line> before_;  // the input
};

// All ranks' calls, in order; run by one team for each rank and block, which goes from call to call
// without waiting for the others, unless `in_stream_order`.
class GroupRun {
 public:
  GroupRun(ProtocolGroup& group, const std::vector<Spec>& specs) : group_(group), specs_(specs) {
    for (int rank = 0; rank < group.size(); ++rank) {
      auto& calls = calls_.emplace_back();
      for (const Spec& spec : specs) calls.emplace_back(spec, rank, group.size());
      threads_done_.emplace_back(specs.size());
    }
  }

  std::chrono::nanoseconds timeout = std::chrono::minutes(5);
  std::vector<bool> absent = std::vector<bool>(8, false);
  // The last rank begins its first call only after that many turns.
  std::uint64_t last_waits_for_turns = 0;
  // Whether no block of a rank begins a call before all its blocks have ended the last one.
  bool in_stream_order = false;
  // Whether each rank's program writes its buffers anew after its kernel has ended.
  bool scribbles = false;

  // What every thread of every block does.
  std::vector<std::function<void()>> bodies(unsigned threads, Turns& turns) {
    std::vector<std::function<void()>> result;
    for (int rank = 0; rank < group_.size(); ++rank) {
      if (absent[static_cast<std::size_t>(rank)]) continue;
      for (int number = 0; number < group_.blocks(); ++number) {
        auto& teams = teams_.emplace_back();
        for (std::size_t i = 0; i < specs_.size(); ++i) {
          teams.push_back(std::make_unique<HostTeam>(threads, group_.size()));
        }
        for (unsigned thread = 0; thread < threads; ++thread) {
          result.emplace_back([this, rank, number, thread, threads, &teams, &turns] {
            std::deque<std::atomic<unsigned>>& done = threads_done_[static_cast<std::size_t>(rank)];
            for (std::size_t i = 0; i < specs_.size(); ++i) {
              HostBlock block(*teams[i], thread, turns);
              const unsigned all = threads * static_cast<unsigned>(group_.blocks());
              while (in_stream_order && i > 0 && done[i - 1] < all) block.pause();
              while (rank == group_.size() - 1 && block.now_ns() < last_waits_for_turns) {
                block.pause();
              }
              one_call(rank, number, i, block);
              block.sync();  // the next kernel starts after the last thread of this one
              if (scribbles && thread == 0) of(rank, i).scribble();
              ++done[i];
            }
          });
        }
      }
    }
    return result;
  }

  // No byte of any buffer has changed.
  void expect_untouched() {
    for (int rank = 0; rank < group_.size(); ++rank) {
      for (std::size_t i = 0; i < specs_.size(); ++i) EXPECT_TRUE(of(rank, i).untouched()) << rank;
    }
  }
  // After `scribbles`, with one call and one channel.
  void expect_scribbles() {
    for (int rank = 0; rank < group_.size(); ++rank) {
      if (absent[static_cast<std::size_t>(rank)]) continue;
      EXPECT_TRUE(of(rank, 0).still_scribbled()) << rank;
    }
  }

  void expect_exact() {
    for (int rank = 0; rank < group_.size(); ++rank) {
      for (const KernelFailure& failure : group_.failures(rank)) EXPECT_EQ(failure.kind, 0U);
      for (std::size_t i = 0; i < specs_.size(); ++i) {
        const Spec& spec = specs_[i];
        EXPECT_EQ(of(rank, i).wrong(), 0U)
            << name(spec.collective) << " by " << name(spec.algorithm) << " of " << spec.count
            << " x " << name(spec.type) << ", " << name(spec.op) << ", rank " << rank << " of "
            << group_.size() << ", " << group_.channels() << " channels";
      }
    }
  }

 private:
  RankCall& of(int rank, std::size_t call) { return calls_[static_cast<std::size_t>(rank)][call]; }
  void one_call(int rank, int number, std::size_t index, HostBlock& block) {
    const Spec& spec = specs_[index];
    const Call call = of(rank, index).call();
    const int channels =
        spec.algorithm == Algorithm::one_shot && call.count == 0 ? 1 : group_.channels();
    const bool reachable = spec.unreachable.count(rank) == 0;
    detail::gpu::CallBlocks blocks{channels};
    if (call.collective == Collective::sendrecv) blocks.receiving_channels = channels;
    if (number >= blocks.all()) return;
    run_on_host(detail::gpu::kernel_for_call(call, spec.algorithm), block,
                group_.arguments(rank, call, spec.algorithm, blocks, timeout, reachable), number);
  }

  ProtocolGroup& group_;
  std::vector<Spec> specs_;
  std::vector<std::vector<RankCall>> calls_;
  std::deque<std::vector<std::unique_ptr<HostTeam>>> teams_;
  std::deque<std::deque<std::atomic<unsigned>>> threads_done_;  // with each rank's calls
};

void run_freely(GroupRun& run, unsigned threads) {
  Turns turns;
  std::vector<std::thread> workers;
  for (const auto& body : run.bodies(threads, turns)) workers.emplace_back(body);
  for (std::thread& worker : workers) worker.join();
}

std::vector<Spec> every_type_and_op() {
  std::vector<Spec> specs;
  for_each_type_and_op([&]<class T>(ReduceOp op) {
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::one_shot, Algorithm::naive, Algorithm::direct}) {
      Spec spec;
      spec.algorithm = algorithm;
      spec.type = kDataTypeOf<T>;
      spec.op = op;
      spec.count = algorithm == Algorithm::one_shot ? 203 : 1009;
      spec.in_place = specs.size() % 2 == 0;
      spec.shift = specs.size() % 3 == 0 ? 1 : 0;
      specs.push_back(spec);
    }
  });
  return specs;
}

constexpr int kCollectivesOnDevices = static_cast<int>(Collective::barrier) + 1;

std::vector<Spec> every_collective(int size, std::size_t count) {
  std::vector<Spec> specs;
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::naive, Algorithm::one_shot, Algorithm::direct}) {
    for (int c = 0; c < kCollectivesOnDevices; ++c) {
      const auto collective = static_cast<Collective>(c);
      const bool small = collective == Collective::all_reduce || collective == Collective::barrier;
      if (algorithm == Algorithm::one_shot && !small) continue;
      // naive reduce_scatter needs scratch memory, which only the communicator provides.
      if (algorithm == Algorithm::naive && collective == Collective::reduce_scatter) continue;
      for (const bool in_place : {false, true}) {
        Spec spec;
        spec.collective = collective;
        spec.algorithm = algorithm;
        spec.count = collective == Collective::barrier ? 0 : count;
        if (algorithm == Algorithm::one_shot) spec.count = std::min<std::size_t>(spec.count, 500);
        spec.in_place = in_place;
        spec.root = algorithm == Algorithm::naive ? 0 : size - 1;
        specs.push_back(spec);
      }
    }
  }
  return specs;
}

// Of every type with elements of another size. `each`: the elements of a chunk.
std::vector<Spec> every_exchange(int size, std::size_t each) {
  std::vector<Spec> specs;
  for (const DataType type : {DataType::u8, DataType::bf16, DataType::f32, DataType::i64}) {
    for (const Collective collective :
         {Collective::sendrecv, Collective::gather, Collective::scatter, Collective::all_to_all}) {
      // The kernels have no way for a message from a rank to itself.
      if (collective == Collective::sendrecv && size == 1) continue;
      const bool rooted = collective == Collective::gather || collective == Collective::scatter;
      for (const bool in_place : {false, true}) {
        if (in_place && !rooted) continue;
        Spec spec;
        spec.collective = collective;
        spec.algorithm = Algorithm::pairwise;
        spec.type = type;
        spec.count = each * static_cast<std::size_t>(size);
        spec.root = size - 1;
        spec.in_place = in_place;
        spec.shift = specs.size() % 2;
        specs.push_back(spec);
      }
    }
  }
  return specs;
}

class DeviceProtocol : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(DeviceProtocol, EveryTypeAndOperation) {
  const auto [size, channels] = GetParam();
  ProtocolGroup group(size, channels, {256, 4});
  GroupRun run(group, every_type_and_op());
  run_freely(run, 1);
  run.expect_exact();
}

TEST_P(DeviceProtocol, AveragesOf16BitsDoNotOverflow) {
  const auto [size, channels] = GetParam();
  ProtocolGroup group(size, channels, {128, 2});
  std::vector<Spec> specs;
  for (const DataType type : {DataType::f16, DataType::bf16}) {
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::naive, Algorithm::one_shot, Algorithm::direct}) {
      if (algorithm == Algorithm::one_shot && size == 1) continue;
      for (const std::size_t count : {1U, 200U}) {
        Spec spec;
        spec.algorithm = algorithm;
        spec.type = type;
        spec.op = ReduceOp::avg;
        spec.count = count;
        spec.large = true;
        specs.push_back(spec);
        if (algorithm == Algorithm::one_shot) continue;
        spec.collective = Collective::reduce_scatter;
        specs.push_back(spec);
      }
    }
  }
  GroupRun run(group, specs);
  run_freely(run, 1);
  run.expect_exact();
}

TEST_P(DeviceProtocol, EveryCollectiveAndCount) {
  const auto [size, channels] = GetParam();
  ProtocolGroup group(size, channels, {128, 2});
  std::vector<Spec> specs;
  for (const std::size_t count : {0U, 1U, 7U, 64U, 1003U}) {
    const std::vector<Spec> more = every_collective(size, count);
    specs.insert(specs.end(), more.begin(), more.end());
  }
  GroupRun run(group, specs);
  run_freely(run, 1);
  run.expect_exact();
}

TEST_P(DeviceProtocol, EveryExchange) {
  const auto [size, channels] = GetParam();
  ProtocolGroup group(size, channels, {128, 2});
  std::vector<Spec> specs;
  for (const std::size_t each : {1U, 7U, 301U}) {
    const std::vector<Spec> more = every_exchange(size, each);
    specs.insert(specs.end(), more.begin(), more.end());
    specs.push_back(Spec{.count = 100});  // a collective of another kernel
  }
  GroupRun run(group, specs);
  run.in_stream_order = true;
  run_freely(run, 1);
  run.expect_exact();
}

INSTANTIATE_TEST_SUITE_P(Sizes, DeviceProtocol,
                         ::testing::Combine(::testing::Range(1, 9), ::testing::Range(1, 5)));

// Blocks of several threads, which are ordered by the block's barriers.
// Packs must be aligned, which host threads would not notice.
TEST(DeviceBlocks, PacksAreAlignedInAllBuffers) {
  using T = std::uint16_t;
  constexpr std::uint64_t kPack = sizeof(detail::gpu::Pack);
  Turns turns;
  HostTeam team(1, 2);
  HostBlock block(team, 0, turns);
  for (std::uint64_t shift = 0; shift < kPack; shift += sizeof(T)) {
    for (std::uint64_t other = 0; other < kPack; other += sizeof(T)) {
      for (std::uint64_t offset = 0; offset < 9; ++offset) {
        team.buffers[0] = {4096 + shift, 8192 + shift};
        team.buffers[1] = {12288 + other, 16384 + shift};
        const Range part{offset, 50};
        const auto borders = detail::gpu::pack_borders<T>(block, {0, 2}, {0, 2}, part);
        const std::uint64_t begin = (offset + borders.before) * sizeof(T);
        ASSERT_LE(borders.before * sizeof(T) + borders.packs * kPack, part.count * sizeof(T));
        EXPECT_EQ(borders.packs, shift != other        ? 0U
                                 : borders.before == 0 ? 6U
                                                       : 5U + (borders.before <= 2 ? 1 : 0));
        if (borders.packs == 0) continue;
        for (const auto& rank : team.buffers) {
          EXPECT_EQ((rank.in + begin) % kPack, 0U);
          EXPECT_EQ((rank.out + begin) % kPack, 0U);
        }
      }
    }
  }
}

TEST(DeviceBlocks, OfSeveralThreads) {
  for (const unsigned threads : {2U, 3U}) {
    ProtocolGroup group(3, 2, {256, 4});
    GroupRun run(group, every_type_and_op());
    run_freely(run, threads);
    run.expect_exact();
  }
}

class Interleaved : public ::testing::TestWithParam<int> {};

TEST_P(Interleaved, InEveryOrderTheSumIsExact) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  const int size = 2 + static_cast<int>(seed % 4);
  const int channels = 1 + static_cast<int>(seed / 4 % 2);
  ProtocolGroup group(size, channels, {64, 2 + static_cast<std::uint32_t>(seed % 3)});
  const std::vector<Spec> all = every_collective(size, 41);
  std::vector<Spec> some;
  for (const std::size_t step : {0U, 5U, 11U}) some.push_back(all[(seed * 7 + step) % all.size()]);
  GroupRun run(group, some);
  Interleaver turns(seed);
  run.timeout = std::chrono::hours(24);
  turns.run(run.bodies(1 + seed % 2, turns));
  run.expect_exact();
}

// The two halves of a sendrecv go in any order, and no window of an exchange fills what another
// rank waits to send.
TEST_P(Interleaved, ExchangesNeverWaitForEachOther) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  const int size = 2 + static_cast<int>(seed % 4);
  const int channels = 1 + static_cast<int>(seed / 4 % 2);
  ProtocolGroup group(size, channels, {64, 2 + static_cast<std::uint32_t>(seed % 3)});
  const std::vector<Spec> all = every_exchange(size, 37);
  std::vector<Spec> some;
  for (const std::size_t step : {0U, 5U, 11U}) some.push_back(all[(seed * 7 + step) % all.size()]);
  GroupRun run(group, some);
  run.in_stream_order = true;
  Interleaver turns(seed);
  run.timeout = std::chrono::hours(24);
  turns.run(run.bodies(1 + seed % 2, turns));
  run.expect_exact();
}

// Only because inboxes alternate does a rank not overwrite data that another has not read yet.
TEST_P(Interleaved, OneShotsMayFollowEachOther) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  ProtocolGroup group(2 + static_cast<int>(seed % 3), 1, {64, 2});
  std::vector<Spec> specs;
  for (const std::size_t count : {13U, 40U, 5U, 40U, 0U, 21U}) {
    Spec spec;
    spec.algorithm = Algorithm::one_shot;
    spec.op = specs.size() % 2 == 0 ? ReduceOp::sum : ReduceOp::max;
    spec.count = count;
    specs.push_back(spec);
  }
  GroupRun run(group, specs);
  Interleaver turns(seed);
  run.timeout = std::chrono::hours(24);
  turns.run(run.bodies(1 + seed % 2, turns));
  run.expect_exact();
}

// Calls by direct follow each other, with others in between. Some have buffers that cannot be
// reached: then ranks that know so run ahead of those that have to find out.
TEST_P(Interleaved, DirectFindsOutWhatIsReachable) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  const int size = 2 + static_cast<int>(seed % 4);
  ProtocolGroup group(size, 1 + static_cast<int>(seed / 3 % 2), {64, 2});
  std::vector<Spec> specs;
  for (const std::size_t count : {13U, 9U, 200U, 0U, 77U, 41U, 5U}) {
    Spec spec;
    spec.algorithm = specs.size() == 4 ? Algorithm::one_shot : Algorithm::automatic;
    spec.collective = static_cast<Collective>((seed + specs.size() / 2) % kCollectivesOnDevices);
    if (specs.size() == 4) spec.collective = Collective::all_reduce;
    spec.count = spec.collective == Collective::barrier ? 0 : count;
    spec.root = static_cast<int>(seed) % size;
    spec.in_place = seed % 2 == 0;
    if ((seed >> specs.size() & 1U) != 0) spec.unreachable.insert(spec.root);
    if (specs.size() == 5) spec.unreachable = {0, size - 1};
    specs.push_back(spec);
  }
  GroupRun run(group, specs);
  Interleaver turns(seed);
  run.timeout = std::chrono::hours(24);
  turns.run(run.bodies(1 + seed % 2, turns));
  run.expect_exact();
}

// A root that knows at once that its buffer cannot be reached is in a later call before the others
// have looked.
TEST_P(Interleaved, OneThatCannotBeReachedRunsAhead) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  const int size = 3 + static_cast<int>(seed % 3);
  ProtocolGroup group(size, 1, {64, 4});
  std::vector<Spec> specs;
  for (int call = 0; call < 12; ++call) {
    Spec spec;
    spec.algorithm = Algorithm::automatic;
    spec.collective = Collective::broadcast;
    spec.count = 5;
    spec.root = 1;
    spec.unreachable = {1};
    specs.push_back(spec);
  }
  GroupRun run(group, specs);
  Interleaver turns(seed);
  run.timeout = std::chrono::hours(24);
  turns.run(run.bodies(1, turns));
  run.expect_exact();
}

// The last rank stays away, or comes about when the others give up. Once a rank's kernel has ended,
// its program writes its buffers anew, and nobody overwrites that.
TEST_P(Interleaved, AFailedDirectCallLeavesNobodyInAnothersBuffers) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  for (std::uint64_t round = 0; round < 6; ++round) {
    const int size = 2 + static_cast<int>(seed % 2);
    ProtocolGroup group(size, 1, {64, 2});
    GroupRun run(group, {Spec{.algorithm = Algorithm::direct, .count = 97, .in_place = true}});
    run.timeout = std::chrono::nanoseconds(1);  // turns of the interleaver
    run.absent[static_cast<std::size_t>(size - 1)] = round == 0;
    // A rank first looks at its deadline after 256 looks, and gives up after 256 more. With the
    // turns of other threads that is after some 650 turns for each rank.
    run.last_waits_for_turns =
        static_cast<std::uint64_t>(size) * (580 + (seed % 4 + round * 4) * 7);
    run.scribbles = true;
    Interleaver turns(seed * 100 + round);
    turns.run(run.bodies(1 + seed / 2 % 2, turns));
    run.expect_scribbles();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Interleaved, ::testing::Range(1, 61));

// Messages that nobody received in an earlier communicator with the same edges between hosts.
TEST(DeviceExchanges, PassOverMessagesOfEarlierCommunicators) {
  for (const Spec& spec : every_exchange(3, 20)) {
    ProtocolGroup group(3, 1, {128, 4});
    for (int rank = 0; rank < 3; ++rank) {
      group.leave_message(rank, (rank + 1) % 3);
      group.leave_message(rank, (rank + 1) % 3);
      group.leave_message(rank, (rank + 2) % 3);
    }
    GroupRun run(group, {spec, spec});
    run.in_stream_order = true;
    run_freely(run, 1);
    run.expect_exact();
  }
}

std::vector<FailureKind> kinds(const ProtocolGroup& group) {
  std::vector<FailureKind> result;
  for (int rank = 0; rank < group.size(); ++rank) {
    for (const KernelFailure& failure : group.failures(rank)) {
      result.push_back(static_cast<FailureKind>(failure.kind));
    }
  }
  return result;
}

TEST(DeviceFailures, ARankThatStaysAwayIsNamed) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::one_shot, Algorithm::direct}) {
    ProtocolGroup group(3, 1, {256, 4});
    GroupRun run(group, {Spec{.algorithm = algorithm, .count = 100}});
    run.absent[2] = true;
    run.timeout = std::chrono::nanoseconds(5000);  // turns of the interleaver
    Interleaver turns(7);
    turns.run(run.bodies(1, turns));
    const std::vector<FailureKind> seen = kinds(group);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), FailureKind::timed_out), 1);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), FailureKind::aborted), 1);
    for (int rank = 0; rank < 2; ++rank) {
      const KernelFailure& failure = group.failures(rank)[0];
      if (failure.kind == static_cast<std::uint64_t>(FailureKind::timed_out) &&
          algorithm != Algorithm::ring) {
        EXPECT_EQ(failure.peer, 2);
      }
    }
  }
}

TEST(DeviceFailures, CallsThatDifferMeet) {
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::one_shot, Algorithm::naive, Algorithm::direct}) {
    ProtocolGroup group(2, 1, {256, 4});
    GroupRun mine(group, {Spec{.algorithm = algorithm, .count = 100}});
    GroupRun theirs(group, {Spec{.algorithm = algorithm, .op = ReduceOp::max, .count = 100}});
    mine.absent[1] = true;
    theirs.absent[0] = true;
    Interleaver turns(11);
    std::vector<std::function<void()>> bodies = mine.bodies(1, turns);
    for (const auto& body : theirs.bodies(1, turns)) bodies.push_back(body);
    turns.run(bodies);
    const std::vector<FailureKind> seen = kinds(group);
    EXPECT_GE(std::count(seen.begin(), seen.end(), FailureKind::mismatched), 1) << name(algorithm);
    if (algorithm == Algorithm::direct) {
      mine.expect_untouched();
      theirs.expect_untouched();
    }
    for (int rank = 0; rank < 2; ++rank) {
      const KernelFailure& failure = group.failures(rank)[0];
      if (failure.kind != static_cast<std::uint64_t>(FailureKind::mismatched)) continue;
      EXPECT_EQ(failure.peer, 1 - rank);
      EXPECT_NE(failure.mine.op, failure.theirs.op);
    }
  }
}

// After a failure, the later calls of the rank do nothing, and do not overwrite the recorded
// failure.
TEST(DeviceFailures, LaterCallsEndAtOnce) {
  ProtocolGroup group(2, 1, {256, 4});
  GroupRun run(group,
               {Spec{.count = 100}, Spec{.count = 50}, Spec{.algorithm = Algorithm::one_shot}});
  run.absent[1] = true;
  run.timeout = std::chrono::nanoseconds(5000);
  Interleaver turns(3);
  turns.run(run.bodies(1, turns));
  EXPECT_EQ(kinds(group)[0], FailureKind::timed_out);
  EXPECT_EQ(group.failures(0)[0].mine.sequence, 0U);
  EXPECT_LT(turns.turns(), 10000U);
}

}  // namespace
}  // namespace rondo::test
