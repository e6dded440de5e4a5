// Every pair of calls that differ, made by the ranks of one communicator: each rank must learn of
// it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rondo/rondo.hpp>

namespace rondo::test {

// Calls of which each differs from every other in at least one of collective, root, type, count,
// reduction and algorithm. Buffers are the caller's.
inline std::vector<Call> different_calls(std::size_t count,
                                         const std::vector<Algorithm>& algorithms) {
  std::vector<Call> calls;
  const auto add = [&](Collective collective, Algorithm algorithm, auto&& change) {
    Call call;
    call.collective = collective;
    call.count = collective == Collective::barrier ? 0 : count;
    call.options.algorithm = algorithm;
    change(call);
    calls.push_back(call);
  };
  const auto as_it_is = [](Call&) {};
  for (const Algorithm algorithm : algorithms) {
    if (algorithm != Algorithm::tree) add(Collective::all_reduce, algorithm, as_it_is);
    if (algorithm == Algorithm::chain || algorithm == Algorithm::halving_doubling) continue;
    if (algorithm != Algorithm::tree) add(Collective::barrier, algorithm, as_it_is);
    const bool sums_for_all =
        algorithm == Algorithm::recursive_doubling || algorithm == Algorithm::hierarchical;
    if (sums_for_all) continue;
    add(Collective::reduce_scatter, algorithm, as_it_is);
    add(Collective::all_gather, algorithm, as_it_is);
    for (const Collective rooted : {Collective::broadcast, Collective::reduce}) {
      for (const int root : {0, 1}) {
        add(rooted, algorithm, [&](Call& call) { call.root = root; });
      }
    }
  }
  // Their parts have the same size for up to 5 ranks.
  const auto whole = [](Call& call) { call.count = (call.count + 59) / 60 * 60; };
  add(Collective::all_to_all, Algorithm::pairwise, whole);
  add(Collective::scatter, Algorithm::pairwise, whole);
  for (const int root : {0, 1}) {
    add(Collective::gather, Algorithm::pairwise, [&](Call& call) {
      whole(call);
      call.root = root;
    });
  }
  for (const Collective collective :
       {Collective::all_reduce, Collective::broadcast, Collective::reduce}) {
    add(collective, Algorithm::ring, [](Call& call) { call.type = DataType::i32; });
    add(collective, Algorithm::ring, [](Call& call) { ++call.count; });
    if (collective == Collective::broadcast) continue;
    add(collective, Algorithm::ring, [](Call& call) { call.op = ReduceOp::max; });
  }
  for (const Algorithm algorithm : algorithms) {
    if (algorithm == Algorithm::ring || algorithm == Algorithm::tree) continue;
    add(Collective::all_reduce, algorithm, [](Call& call) { call.type = DataType::i32; });
    add(Collective::all_reduce, algorithm, [](Call& call) { ++call.count; });
    add(Collective::all_reduce, algorithm, [](Call& call) { call.op = ReduceOp::max; });
  }
  return calls;
}

// One rank's part: makes `calls`, then a barrier if they succeed. Returns the text of the first
// error; empty if none. `memory`: for their buffers; if it is empty, they are in ordinary memory.
inline std::string error_in_calls_or_next(Communicator& comm, const std::vector<Call>& calls,
                                          bool asynchronous, std::span<double> memory = {}) {
  // Outlives the error that it throws: the C++ library counts the owners of an exception in code
  // that ThreadSanitizer does not see.
  Work work;
  try {
    for (Call call : calls) {
      std::vector<double> ordinary(call.count + 1);
      std::vector<double> others(call.count);  // for calls that cannot be made in place
      double* const buffer = memory.empty() ? ordinary.data() : memory.data();
      call.in = call.out = buffer;
      // A rank's own chunk is at its place in the whole vector.
      const Range own = chunk_range(call.count, static_cast<std::uint64_t>(comm.size()),
                                    static_cast<std::uint64_t>(comm.rank()));
      const std::size_t own_bytes = own.offset * size_of(call.type);
      auto* const bytes = reinterpret_cast<std::byte*>(buffer);
      const bool gathers =
          call.collective == Collective::all_gather || call.collective == Collective::gather;
      const bool scatters =
          call.collective == Collective::reduce_scatter || call.collective == Collective::scatter;
      if (gathers) call.in = bytes + own_bytes;
      if (scatters) call.out = bytes + own_bytes;
      if (call.collective == Collective::all_to_all) call.out = others.data();
      if (asynchronous) {
        work = comm.run_async(call);
        work.wait();
      } else {
        comm.run(call);
      }
    }
    comm.barrier();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// What one rank calls and what all others call.
struct Mismatch {
  Call of_one;
  Call of_others;
  bool asynchronous = false;
};

// Every pair twice: by blocking calls, and in the other order by asynchronous ones.
inline std::vector<Mismatch> all_mismatches(std::size_t count,
                                            const std::vector<Algorithm>& algorithms) {
  const std::vector<Call> calls = different_calls(count, algorithms);
  std::vector<Mismatch> pairs;
  for (std::size_t a = 0; a < calls.size(); ++a) {
    for (std::size_t b = 0; b < calls.size(); ++b) {
      if (a != b) pairs.push_back({calls[a], calls[b], a < b});
    }
  }
  return pairs;
}

// Makes the call of rank `comm.rank()` in a mismatch. Returns what is wrong with the rank's error;
// empty if nothing is.
inline std::string complaint_about(Communicator& comm, const Mismatch& mismatch, int odd,
                                   std::span<double> memory = {}) {
  const Call& mine = comm.rank() == odd ? mismatch.of_one : mismatch.of_others;
  const std::string error = error_in_calls_or_next(comm, {mine}, mismatch.asynchronous, memory);
  if (error.find("Make the same calls") != std::string::npos) return {};
  const auto text_of = [](const Call& call) {
    return std::string(name(call.collective)) + " by " +
           std::string(name(*call.options.algorithm)) + ", root " + std::to_string(call.root) +
           ", " + std::to_string(call.count) + " x " + std::string(name(call.type));
  };
  return "rank " + std::to_string(comm.rank()) + " of " + std::to_string(comm.size()) +
         (error.empty() ? " noticed nothing" : " was told '" + error + "'") + ": rank " +
         std::to_string(odd) + " makes " + text_of(mismatch.of_one) + ", the others " +
         text_of(mismatch.of_others);
}

// A rank that makes none of the chains that the others make, whose roots are `stride` apart.
struct LateRank {
  int rank = 0;
  Collective collective = Collective::broadcast;
  Algorithm algorithm = Algorithm::ring;
  int stride = 0;
};

inline std::vector<LateRank> every_late_rank(int ranks) {
  std::vector<LateRank> all;
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::naive, Algorithm::tree}) {
    for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
      for (int rank = 0; rank < ranks; ++rank) {
        for (const int stride : {0, 1, ranks - 1}) {
          all.push_back({rank, collective, algorithm, stride});
        }
      }
    }
  }
  return all;
}

// One rank's part. Returns how many chains it ends before a deadline passes, since the late rank is
// missing. If more than one, a rank would not learn in its next call of a mismatch that only the
// late rank knows of.
inline int chains_ended_without(Communicator& comm, const LateRank& late) {
  if (comm.rank() == late.rank) return 0;
  int ended = 0;
  try {
    for (; ended < comm.size(); ++ended) {
      std::vector<float> data(10);
      Call call;
      call.collective = late.collective;
      call.in = call.out = data.data();
      call.count = data.size();
      call.type = DataType::f32;
      call.root = ended * late.stride % comm.size();
      call.options = {.timeout = std::chrono::milliseconds(50), .algorithm = late.algorithm};
      comm.run(call);
    }
  } catch (const Error&) {
  }
  return ended;
}

}  // namespace rondo::test
