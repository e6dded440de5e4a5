// Buffers of an MPI program as bytes without gaps, which is how Rondo moves them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <vector>

#include "adapters/mpi/functions.hpp"
#include "adapters/mpi/types.hpp"

namespace rondo::mpi_programs {

// `count` elements of a datatype, from `data` on.
struct Elements {
  const void* data = nullptr;
  std::size_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  Layout layout;

  [[nodiscard]] std::size_t bytes() const { return count * layout.bytes; }
  // Those from element `first` on.
  [[nodiscard]] Elements part(std::ptrdiff_t first, std::size_t elements) const {
    return {static_cast<const std::byte*>(data) + first * layout.extent, elements, type, layout};
  }
};

// MPI's own functions, on these bytes. They throw TransportError if MPI fails.
void pack(const Elements& from, std::byte* to);
void unpack(const std::byte* from, const Elements& to);

// What a call reads: the elements where they are, or packed.
class Input {
 public:
  explicit Input(const Elements& elements);
  [[nodiscard]] const std::byte* data() const { return data_; }

 private:
  std::vector<std::byte> packed_;
  const std::byte* data_;
};

// What a call writes: the elements where they are, or memory that unpack() takes to them.
class Output {
 public:
  explicit Output(const Elements& elements);
  [[nodiscard]] std::byte* data() { return data_; }
  void unpack() const;

 private:
  Elements elements_;
  std::vector<std::byte> packed_;
  std::byte* data_;
};

// Parts of a buffer, one for each rank: `counts[r]` elements from element `places[r]` on.
class Parts {
 public:
  Parts(const Elements& buffer, Counts counts, Counts places, int ranks);

  // Bytes of each rank.
  [[nodiscard]] const std::vector<std::size_t>& bytes() const { return bytes_; }
  [[nodiscard]] std::size_t all_bytes() const;
  [[nodiscard]] const Elements& of(int rank) const {
    return parts_[static_cast<std::size_t>(rank)];
  }
  // Whether the parts lie side by side in the order of ranks, as bytes, from begin() on.
  [[nodiscard]] bool is_one_range() const { return one_range_; }
  [[nodiscard]] const void* begin() const { return begin_; }

  void pack_all(std::byte* to) const;
  void unpack_all(const std::byte* from) const;

 private:
  std::vector<Elements> parts_;
  std::vector<std::size_t> bytes_;
  bool one_range_ = true;
  const void* begin_;
};

// The same as Input and Output.
class PartsInput {
 public:
  explicit PartsInput(const Parts& parts);
  [[nodiscard]] const std::byte* data() const { return data_; }

 private:
  std::vector<std::byte> packed_;
  const std::byte* data_;
};
class PartsOutput {
 public:
  explicit PartsOutput(const Parts& parts);
  [[nodiscard]] std::byte* data() { return data_; }
  void unpack() const;

 private:
  const Parts& parts_;
  std::vector<std::byte> packed_;
  std::byte* data_;
};

}  // namespace rondo::mpi_programs
