#include "memory/reach.hpp"

namespace rondo::detail {

Reach Reach::in_one_process() {
  Reach reach;
  reach.one_process_ = true;
  return reach;
}

std::uint64_t Reach::location_of(const void* data, std::size_t bytes) const {
  if (one_process_) return reinterpret_cast<std::uintptr_t>(data);
  if (own_ == nullptr) return kUnreachable;
  const std::optional<std::uint64_t> offset = own_->offset_of(data, bytes);
  return offset ? kFirstLocation + *offset : kUnreachable;
}

Arena::Use Reach::use(std::uint64_t in, std::size_t in_bytes, std::uint64_t out,
                      std::size_t out_bytes) const {
  if (own_ == nullptr) return {};
  const auto range = [](std::uint64_t location, std::size_t bytes) {
    return location < kFirstLocation ? ByteRange() : ByteRange{location - kFirstLocation, bytes};
  };
  return {*own_, {range(in, in_bytes), range(out, out_bytes)}};
}

bool Reach::make_private(const void* data, std::size_t bytes) const {
  if (own_ == nullptr || bytes == 0) return true;
  return own_->make_private(static_cast<const std::byte*>(data), bytes);
}

}  // namespace rondo::detail
