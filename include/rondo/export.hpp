/// \file
/// Marks what librondo exports; everything else in the library is hidden.
#pragma once

#define RONDO_API __attribute__((visibility("default")))
