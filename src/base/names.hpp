// Lists of names, for errors.
#pragma once

#include <string>
#include <string_view>

#include <rondo/call.hpp>

namespace rondo::detail {

// "auto, ring, naive, ...": all that algorithm_named() knows.
std::string names_of_algorithms();

// "split", "allocate", ...; empty for PartOf::nothing, and for a value outside the enumeration.
std::string_view name_of(PartOf function);
// What the program has called.
std::string_view name_of_function(const Call& call);

}  // namespace rondo::detail
