// Messages, and calls that exchange elements, against exact answers; the same checks for ranks that
// are threads and processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

namespace rondo::test {

// `Comm`: a Communicator, or what has its calls.
template <class T, class Comm = Communicator>
class ExchangeCheck {
 public:
  // `each`: elements that go from one rank to another in a call.
  ExchangeCheck(Comm& comm, std::size_t each, bool asynchronous)
      : comm_(comm), each_(each), asynchronous_(asynchronous) {}

  void all() {
    messages();
    shifts();
    for (int root = 0; root < comm_.size(); ++root) {
      gather(root);
      scatter(root);
    }
    all_to_all();
    with_counts();
    for (int root = 0; root < comm_.size(); ++root) to_and_from_with_counts(root);
    if constexpr (std::is_same_v<Comm, Communicator>) all_to_all_with_counts();
  }

  // Element i of what rank `from` has for rank `to`: different for all elements and ranks, up to
  // the type's width.
  static T value(int from, int to, std::size_t i) {
    const std::size_t turn = i / 251;
    return element(i * 131 + static_cast<std::size_t>(from * 17 + to * 5) + turn);
  }
  static T element(std::size_t number) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(number);
    } else {
      return T(static_cast<float>(number % 256));  // which all types hold
    }
  }
  [[nodiscard]] static std::vector<T> values(int from, int to, std::size_t count) {
    std::vector<T> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = value(from, to, i);
    return all;
  }

  // Rank 0 sends to each other rank, which answers with twice as many elements.
  void messages() {
    for (int peer = 1; peer < comm_.size(); ++peer) {
      if (comm_.rank() == 0) {
        send(values(0, peer, each_), peer);
        expect(receive(2 * each_, peer), values(peer, 0, 2 * each_), "an answer");
      } else if (comm_.rank() == peer) {
        expect(receive(each_, 0), values(0, peer, each_), "a message");
        send(values(peer, 0, 2 * each_), 0);
      }
    }
  }

  // Every rank sends at the same time, over each distance; ranks with an odd number send a little
  // more.
  void shifts() {
    const int size = comm_.size();
    const auto count_of = [&](int rank) {
      return size % 2 == 0 ? each_ + static_cast<std::size_t>(rank % 2) : each_;
    };
    for (int distance = 0; distance < size; ++distance) {
      const int to = (comm_.rank() + distance) % size;
      const int from = (comm_.rank() + size - distance) % size;
      const std::vector<T> in = values(comm_.rank(), to, count_of(comm_.rank()));
      std::vector<T> out(count_of(from));
      if (asynchronous_) {
        comm_.sendrecv_async(in, to, out, from).wait();
      } else {
        comm_.sendrecv(in, to, out, from);
      }
      expect(out, values(from, comm_.rank(), out.size()), "a shift");
    }
  }

  void gather(int root) {
    const std::vector<T> in = values(comm_.rank(), root, each_);
    const bool is_root = comm_.rank() == root;
    std::vector<T> out(is_root ? whole() : 0);
    if (asynchronous_) {
      comm_.gather_async(in, out, root).wait();
    } else {
      comm_.gather(in, out, root);
    }
    if (is_root) expect(out, from_all(root), "gather to " + std::to_string(root));
    std::vector<T> buffer(is_root ? whole() : each_);
    const std::span<T> mine = is_root ? part(buffer, root) : std::span<T>(buffer);
    std::copy(in.begin(), in.end(), mine.begin());
    comm_.gather(mine, buffer, root);
    if (is_root) expect(buffer, from_all(root), "gather in place");
  }

  void scatter(int root) {
    const bool is_root = comm_.rank() == root;
    const std::vector<T> in = is_root ? to_all(root) : std::vector<T>();
    std::vector<T> out(each_);
    if (asynchronous_) {
      comm_.scatter_async(in, out, root).wait();
    } else {
      comm_.scatter(in, out, root);
    }
    expect(out, values(root, comm_.rank(), each_), "scatter from " + std::to_string(root));
    std::vector<T> buffer = is_root ? to_all(root) : std::vector<T>(each_);
    const std::span<T> mine = is_root ? part(buffer, root) : std::span<T>(buffer);
    comm_.scatter(buffer, mine, root);
    expect(mine, values(root, comm_.rank(), each_), "scatter in place");
  }

  void all_to_all() {
    const std::vector<T> in = to_all(comm_.rank());
    std::vector<T> out(whole());
    if (asynchronous_) {
      comm_.all_to_all_async(in, out).wait();
    } else {
      comm_.all_to_all(in, out);
    }
    expect(out, from_all(comm_.rank()), "all_to_all");
    expect(in, to_all(comm_.rank()), "the input of all_to_all");
  }

  // gather_v and scatter_v, whose chunks are those of with_counts().
  void to_and_from_with_counts(int root) {
    const std::vector<std::size_t> counts = counts_of_ranks();
    const bool is_root = comm_.rank() == root;
    const std::size_t own = counts[static_cast<std::size_t>(comm_.rank())];
    std::vector<T> all;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      const auto theirs = values(rank, root, counts[static_cast<std::size_t>(rank)]);
      all.insert(all.end(), theirs.begin(), theirs.end());
    }
    const std::vector<T> mine = values(comm_.rank(), root, own);
    std::vector<T> gathered(is_root ? all.size() : 0);
    std::vector<T> part(own);
    if (asynchronous_) {
      comm_.gather_v_async(mine, gathered, counts, root).wait();
      comm_.scatter_v_async(gathered, part, counts, root).wait();
    } else {
      comm_.gather_v(mine, gathered, counts, root);
      comm_.scatter_v(gathered, part, counts, root);
    }
    if (is_root) expect(gathered, all, "gather_v to " + std::to_string(root));
    expect(part, mine, "scatter_v from " + std::to_string(root));
  }

  // From rank r to rank s go (r + 2s) mod 5 parts of each_ elements, and one more if r is below s:
  // so some send nothing, and what comes from a rank differs from what goes to it.
  void all_to_all_with_counts() {
    const auto count_of = [&](int from, int to) {
      return static_cast<std::size_t>((from + 2 * to) % 5) * each_ + (from < to ? 1 : 0);
    };
    std::vector<std::size_t> counts;
    std::vector<std::size_t> received;
    std::vector<T> in;
    std::vector<T> expected;
    for (int peer = 0; peer < comm_.size(); ++peer) {
      counts.push_back(count_of(comm_.rank(), peer));
      received.push_back(count_of(peer, comm_.rank()));
      const std::vector<T> sent = values(comm_.rank(), peer, counts.back());
      in.insert(in.end(), sent.begin(), sent.end());
      const std::vector<T> theirs = values(peer, comm_.rank(), received.back());
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    std::vector<T> out(expected.size());
    if (asynchronous_) {
      comm_.all_to_all_v_async(in, counts, out, received).wait();
    } else {
      comm_.all_to_all_v(in, counts, out, received);
    }
    expect(out, expected, "all_to_all_v");
  }

  // Rank r has r times each_ elements, and one more if r is odd: rank 0 has none.
  [[nodiscard]] std::vector<std::size_t> counts_of_ranks() const {
    std::vector<std::size_t> counts;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(comm_.size()); ++rank) {
      counts.push_back(rank * each_ + rank % 2);
    }
    return counts;
  }
  void with_counts() {
    const std::vector<std::size_t> counts = counts_of_ranks();
    const std::size_t all = std::reduce(counts.begin(), counts.end());
    const auto rank = static_cast<std::ptrdiff_t>(comm_.rank());
    const std::size_t offset = std::reduce(counts.begin(), counts.begin() + rank);
    const std::size_t own = counts[static_cast<std::size_t>(rank)];
    std::vector<T> expected;
    for (int from = 0; from < comm_.size(); ++from) {
      const std::vector<T> theirs = values(from, 0, counts[static_cast<std::size_t>(from)]);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    std::vector<T> out(all);
    const std::vector<T> mine = values(comm_.rank(), 0, own);
    if (asynchronous_) {
      comm_.all_gather_v_async(mine, out, counts).wait();
    } else {
      comm_.all_gather_v(mine, out, counts);
    }
    expect(out, expected, "all_gather_v");
    std::vector<T> buffer(all);
    std::copy(mine.begin(), mine.end(), buffer.begin() + static_cast<std::ptrdiff_t>(offset));
    comm_.all_gather_v(buffer, counts);
    expect(buffer, expected, "all_gather_v in place");

    // The largest of what the ranks have is the last rank's, in types that do not wrap.
    const auto contribution = [&](int of, std::size_t i) {
      return element(i % 90 + static_cast<std::size_t>(of));
    };
    std::vector<T> in(all);
    for (std::size_t i = 0; i < all; ++i) in[i] = contribution(comm_.rank(), i);
    std::vector<T> largest(own);
    for (std::size_t i = 0; i < own; ++i) largest[i] = contribution(comm_.size() - 1, offset + i);
    std::vector<T> reduced(own);
    if (asynchronous_) {
      comm_.reduce_scatter_v_async(in, reduced, counts, ReduceOp::max).wait();
    } else {
      comm_.reduce_scatter_v(in, reduced, counts, ReduceOp::max);
    }
    expect(reduced, largest, "reduce_scatter_v");
    comm_.reduce_scatter_v(in, counts, ReduceOp::max);
    expect(std::span(in).subspan(offset, own), largest, "reduce_scatter_v in place");
  }

 private:
  [[nodiscard]] std::size_t whole() const { return each_ * static_cast<std::size_t>(comm_.size()); }
  [[nodiscard]] std::span<T> part(std::vector<T>& buffer, int rank) const {
    return std::span(buffer).subspan(static_cast<std::size_t>(rank) * each_, each_);
  }
  [[nodiscard]] std::vector<T> from_all(int to) const {
    std::vector<T> all;
    for (int from = 0; from < comm_.size(); ++from) {
      for (std::size_t i = 0; i < each_; ++i) all.push_back(value(from, to, i));
    }
    return all;
  }
  [[nodiscard]] std::vector<T> to_all(int from) const {
    std::vector<T> all;
    for (int to = 0; to < comm_.size(); ++to) {
      for (std::size_t i = 0; i < each_; ++i) all.push_back(value(from, to, i));
    }
    return all;
  }

  void send(const std::vector<T>& data, int to) {
    if (asynchronous_) {
      comm_.send_async(data, to).wait();
    } else {
      comm_.send(data, to);
    }
  }
  std::vector<T> receive(std::size_t count, int from) {
    std::vector<T> data(count);
    if (asynchronous_) {
      comm_.recv_async(data, from).wait();
    } else {
      comm_.recv(data, from);
    }
    return data;
  }

  template <class Actual>
  void expect(const Actual& actual, const std::vector<T>& expected, const std::string& what) const {
    const bool equal = std::equal(actual.begin(), actual.end(), expected.begin(), expected.end());
    EXPECT_TRUE(equal) << what << ": rank " << comm_.rank() << " of " << comm_.size() << ", "
                       << each_ << " elements of " << sizeof(T) << " bytes each way";
  }

  Comm& comm_;
  std::size_t each_;
  bool asynchronous_;
};

// Sizes of no element, one, one slice, several windows, and of odd numbers.
inline constexpr std::size_t kExchangeSizes[] = {0, 1, 64, 2311};
template <class T, class Comm>
void check_exchanges(Comm& comm, bool asynchronous) {
  for (const std::size_t each : kExchangeSizes) {
    ExchangeCheck<T, Comm>(comm, each, asynchronous).all();
  }
}

}  // namespace rondo::test
