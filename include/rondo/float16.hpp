/// \file
/// The element types of 16 bits that C++20 lacks.
#pragma once

#include <bit>
#include <cstdint>

#include <rondo/export.hpp>

namespace rondo {

/// IEEE 754 binary16 as stored bits. Conversions round to nearest, ties to even.
struct Float16 {
  std::uint16_t bits = 0;

  constexpr Float16() = default;
  constexpr explicit Float16(float value) : bits(encode(value)) {}
  static constexpr Float16 from_bits(std::uint16_t bits) {
    Float16 result;
    result.bits = bits;
    return result;
  }

  constexpr explicit operator float() const {
    const std::uint32_t sign = (bits & 0x8000U) << 16U;
    const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
    const std::uint32_t mantissa = bits & 0x3FFU;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
      return sign != 0 ? -magnitude : magnitude;
    }
    const std::uint32_t wide_exponent = exponent == 0x1F ? 0xFFU : exponent + 112;
    return std::bit_cast<float>(sign | (wide_exponent << 23U) | (mantissa << 13U));
  }

  friend constexpr bool operator==(Float16, Float16) = default;

 private:
  static constexpr std::uint16_t encode(float value) {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((wide >> 16U) & 0x8000U);
    const std::uint32_t magnitude = wide & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) {  // NaN: stays quiet, keeps the top of its payload
      return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13U) & 0x3FFU));
    }
    if (magnitude >= 0x477FF000U) {  // 65520 and above round to infinity
      return static_cast<std::uint16_t>(sign | 0x7C00U);
    }
    if (magnitude < 0x38800000U) {  // below 2^-14: a subnormal, or zero
      // Adding 0.5 leaves the value, in units of 2^-24 and rounded by the FPU, in the low bits.
      const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
      return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) & 0x7FFU));
    }
    const std::uint32_t odd = (magnitude >> 13U) & 1U;
    return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000U + 0xFFFU + odd) >> 13U));
  }
};

/// bfloat16 (the top half of a binary32) as stored bits. Conversions round to nearest, ties to
/// even.
struct BFloat16 {
  std::uint16_t bits = 0;

  constexpr BFloat16() = default;
  constexpr explicit BFloat16(float value) : bits(encode(value)) {}
  static constexpr BFloat16 from_bits(std::uint16_t bits) {
    BFloat16 result;
    result.bits = bits;
    return result;
  }

  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
  }

  friend constexpr bool operator==(BFloat16, BFloat16) = default;

 private:
  static constexpr std::uint16_t encode(float value) {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    if ((wide & 0x7FFFFFFFU) > 0x7F800000U) {
      return static_cast<std::uint16_t>((wide >> 16U) | 0x40U);
    }
    const std::uint32_t odd = (wide >> 16U) & 1U;
    return static_cast<std::uint16_t>((wide + 0x7FFFU + odd) >> 16U);
  }
};

}  // namespace rondo
