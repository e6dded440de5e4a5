// Memory that ranks share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/file_descriptor.hpp"
#include "memory/memory_limits.hpp"

namespace rondo::detail {

// Owns a mapping of zeroed or shared pages.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Maps zeroed pages of this process. Throws TransportError.
Mapping map_private(std::size_t bytes);

// Memory of a host's ranks, and the file by which other processes map it: without a name, so that
// nothing stays when the processes end.
struct SharedObject {
  FileDescriptor file;
  Mapping mapping;
};

// Makes such memory. It is sealed, so that no process can change its size. The pages of the first
// `reserved_bytes` are reserved, so that too little memory is an error here and never a SIGBUS
// later; whoever uses the rest first reserves it, by touch() or reserve_pages(). Throws
// TransportError that says what to change.
SharedObject create_shared(std::size_t bytes, std::size_t reserved_bytes);

// Reserves and maps `bytes` bytes from byte `offset` on, both in whole pages: in huge ones where
// the system allows it. Throws TransportError.
void touch(const SharedObject& object, std::size_t offset, std::size_t bytes);

// Says whether so much memory is left, and a little to spare. Without that, the next page that a
// process writes for the first time, of its stack say, would end the process. Small requests need
// nothing to spare.
bool has_room(const MemoryLimit& limit, std::size_t bytes);
// Throw TransportError that says what to change if there is no room, by any limit of this process
// or by this one.
void require_room(std::size_t bytes);
void require_room_within(const MemoryLimit& limit, std::size_t bytes);

// Reserves whole pages of a mapping, to which other ranks may have written already: also by several
// ranks at once. Throws TransportError.
void reserve_pages(std::byte* data, std::size_t bytes);

// Enters the pages of shared memory in this process's page table, so that no later access has to
// wait for that. False, with errno, if the system does not do it.
bool populate(std::byte* data, std::size_t bytes);

std::size_t page_bytes();

// Maps what another process created. Throws TransportError unless it is sealed and has that size.
Mapping map_shared(const FileDescriptor& file, std::size_t bytes);

}  // namespace rondo::detail
