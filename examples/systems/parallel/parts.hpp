// The ranks that compute one model together, each a part of it.
#pragma once

#include <cstddef>
#include <rondo/communicator.hpp>
#include <span>

namespace lenet::systems {

// The elements that one part has of something.
struct PartRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Part number `part` of `parts` nearly equal ones.
PartRange part_of(std::size_t elements, int part, int parts);

// What the parts of a model tell each other. Counts the bytes that this rank sends; sums and
// gathered matrices as if they went by the ring.
class Parts {
 public:
  explicit Parts(rondo::Communicator comm) : comm_(std::move(comm)) {}

  // The number of this rank's part, and how many there are.
  [[nodiscard]] int part() const { return comm_.rank(); }
  [[nodiscard]] int parts() const { return comm_.size(); }

  // Collective: the sum over the parts, in place.
  void sum(std::span<float> values);
  // Collective: each part has some columns of a matrix of so many, as part_of() says; all get the
  // matrix. Both are stored row by row.
  void gather_columns(std::span<const float> mine, std::span<float> whole, std::size_t columns);
  // This part's columns of it.
  void take_columns(std::span<const float> whole, std::span<float> mine, std::size_t columns) const;

  template <class T>
  void send(std::span<const T> values, int to) {
    comm_.send(values, to);
    sent_bytes_ += values.size_bytes();
  }
  template <class T>
  void recv(std::span<T> values, int from) {
    comm_.recv(values, from);
  }
  // Both at once, with the same part.
  void sendrecv(std::span<const float> out, std::span<float> in, int with);

  [[nodiscard]] std::size_t sent_bytes() const { return sent_bytes_; }

 private:
  rondo::Communicator comm_;
  std::vector<float> gathered_;
  std::size_t sent_bytes_ = 0;
};

}  // namespace lenet::systems
