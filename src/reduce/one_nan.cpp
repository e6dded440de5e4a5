#include "reduce/one_nan.hpp"

#include <cstdint>
#include <cstring>

namespace rondo::detail {
namespace {

// `kInfinity`: the bits of infinity; a NaN has more, without its sign. `kNan`: those of the NaN
// that stays.
template <class Bits, Bits kInfinity, Bits kNan>
void replace(std::byte* data, std::size_t count) {
  constexpr Bits kWithoutSign = static_cast<Bits>(~Bits{0}) >> 1U;
  for (std::size_t i = 0; i < count; ++i) {
    Bits bits = 0;
    std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
    bits = (bits & kWithoutSign) > kInfinity ? kNan : bits;
    std::memcpy(data + i * sizeof(Bits), &bits, sizeof(Bits));
  }
}

}  // namespace

void make_nans_alike(std::byte* data, DataType type, std::size_t count) {
  switch (type) {
    case DataType::f16:
      return replace<std::uint16_t, 0x7C00, 0x7E00>(data, count);
    case DataType::bf16:
      return replace<std::uint16_t, 0x7F80, 0x7FC0>(data, count);
    case DataType::f32:
      return replace<std::uint32_t, 0x7F800000, 0x7FC00000>(data, count);
    case DataType::c64:
      return replace<std::uint32_t, 0x7F800000, 0x7FC00000>(data, 2 * count);
    case DataType::c128:
      return replace<std::uint64_t, 0x7FF0000000000000, 0x7FF8000000000000>(data, 2 * count);
    case DataType::f64:
      return replace<std::uint64_t, 0x7FF0000000000000, 0x7FF8000000000000>(data, count);
    default:
      return;
  }
}

}  // namespace rondo::detail
