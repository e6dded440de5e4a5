#include "adapters/mpi/buffers.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <rondo/errors.hpp>

#include "adapters/mpi/datatypes.hpp"

namespace rondo::mpi_programs {
namespace {

// Calls `visit(part, where its bytes begin)` for parts that MPI's functions can take at once.
template <class Visit>
void in_parts(const Elements& elements, const Visit& visit) {
  if (elements.layout.bytes == 0) return;
  const std::size_t most = kMostPackedBytes / elements.layout.bytes;
  if (most == 0) throw TransportError("MPI cannot pack elements of more than 2 GiB");
  for (std::size_t done = 0; done < elements.count; done += most) {
    visit(elements.part(static_cast<std::ptrdiff_t>(done), std::min(most, elements.count - done)),
          done * elements.layout.bytes);
  }
}

void require(bool packed) {
  if (!packed) throw TransportError("MPI cannot pack a datatype as bytes without gaps");
}

std::byte* address_of(const void* data) { return static_cast<std::byte*>(const_cast<void*>(data)); }

}  // namespace

void pack(const Elements& from, std::byte* to) {
  if (from.layout.contiguous) {
    if (from.bytes() > 0) std::memcpy(to, from.data, from.bytes());
    return;
  }
  in_parts(from, [to](const Elements& part, std::size_t at) {
    require(pack_elements(part.data, part.count, part.type, to + at, part.bytes()));
  });
}

void unpack(const std::byte* from, const Elements& to) {
  if (to.layout.contiguous) {
    if (to.bytes() > 0) std::memcpy(address_of(to.data), from, to.bytes());
    return;
  }
  in_parts(to, [from](const Elements& part, std::size_t at) {
    require(unpack_elements(from + at, part.bytes(), address_of(part.data), part.count, part.type));
  });
}

Input::Input(const Elements& elements)
    : packed_(elements.layout.contiguous ? 0 : elements.bytes()),
      data_(elements.layout.contiguous ? static_cast<const std::byte*>(elements.data)
                                       : packed_.data()) {
  if (!elements.layout.contiguous) pack(elements, packed_.data());
}

Output::Output(const Elements& elements)
    : elements_(elements),
      packed_(elements.layout.contiguous ? 0 : elements.bytes()),
      data_(elements.layout.contiguous ? address_of(elements.data) : packed_.data()) {}

void Output::unpack() const {
  if (!elements_.layout.contiguous) mpi_programs::unpack(packed_.data(), elements_);
}

// The place of an empty part says nothing.
Parts::Parts(const Elements& buffer, Counts counts, Counts places, int ranks)
    : begin_(buffer.data) {
  std::ptrdiff_t next = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto count = static_cast<std::size_t>(counts[rank]);
    parts_.push_back(buffer.part(count > 0 ? places[rank] : 0, count));
    bytes_.push_back(parts_.back().bytes());
    if (count > 0 && places[rank] != next) one_range_ = false;
    next += counts[rank];
  }
  one_range_ = one_range_ && buffer.layout.contiguous;
}

std::size_t Parts::all_bytes() const {
  return std::reduce(bytes_.begin(), bytes_.end(), std::size_t{0});
}

void Parts::pack_all(std::byte* to) const {
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    pack(parts_[rank], to);
    to += bytes_[rank];
  }
}

void Parts::unpack_all(const std::byte* from) const {
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    unpack(from, parts_[rank]);
    from += bytes_[rank];
  }
}

PartsInput::PartsInput(const Parts& parts)
    : packed_(parts.is_one_range() ? 0 : parts.all_bytes()),
      data_(parts.is_one_range() ? address_of(parts.begin()) : packed_.data()) {
  if (!parts.is_one_range()) parts.pack_all(packed_.data());
}

PartsOutput::PartsOutput(const Parts& parts)
    : parts_(parts),
      packed_(parts.is_one_range() ? 0 : parts.all_bytes()),
      data_(parts.is_one_range() ? address_of(parts.begin()) : packed_.data()) {}

void PartsOutput::unpack() const {
  if (!parts_.is_one_range()) parts_.unpack_all(packed_.data());
}

}  // namespace rondo::mpi_programs
