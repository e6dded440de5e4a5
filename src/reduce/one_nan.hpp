// One bit pattern for all NaNs.
#pragma once

#include <cstddef>

#include <rondo/types.hpp>

namespace rondo::detail {

// Makes every NaN among these elements the quiet one without a sign and without further bits.
// Integers stay as they are. The sum of two NaNs has the bits of one of them, and compilers choose
// which: ranks that add the same two, each for itself, need this to get the same bits.
void make_nans_alike(std::byte* data, DataType type, std::size_t count);

}  // namespace rondo::detail
