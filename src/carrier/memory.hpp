// Memory that ranks share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

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

// Zeroed pages of this process. Throws TransportError.
Mapping map_private(std::size_t bytes);

// Owns the name of a shared memory object and removes it; what is mapped stays mapped.
class SharedName {
 public:
  SharedName() = default;
  explicit SharedName(std::string text) : text_(std::move(text)) {}
  SharedName(SharedName&& other) noexcept : text_(std::exchange(other.text_, {})) {}
  SharedName& operator=(SharedName&& other) noexcept {
    std::swap(text_, other.text_);
    return *this;
  }
  SharedName(const SharedName&) = delete;
  SharedName& operator=(const SharedName&) = delete;
  ~SharedName();

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct NamedMapping {
  SharedName name;
  Mapping mapping;
};

// A new shared memory object with an unpredictable name, mode 0600, all of its pages reserved, so
// that a full /dev/shm is an error here and never a SIGBUS later. Throws TransportError with the
// cure when there is too little room.
NamedMapping create_shared(std::size_t bytes);

// Maps the object that another process created. Throws TransportError.
Mapping open_shared(const std::string& name, std::size_t bytes);

}  // namespace rondo::detail
