// Lists of names, for errors.
#pragma once

#include <string>

namespace rondo::detail {

// "auto, ring, naive, ...": all that algorithm_named() knows.
std::string names_of_algorithms();

}  // namespace rondo::detail
