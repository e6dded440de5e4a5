// Files of which nobody ever sees a part.
#pragma once

#include <string>
#include <string_view>

namespace lenet {

// The name under which a file is written before it is renamed: beside it, or, if it is a symbolic
// link, beside the file that this leads to.
std::string beside(const std::string& file);

// Writes the file anew: under another name first, so that the old file stays whole until the new
// one is. A symbolic link stays one, and what is no file (a terminal, a pipe) is written to as it
// is. Throws std::runtime_error with the system's reason, and leaves nothing behind, where that
// fails (no room, say).
void replace_file(const std::string& file, std::string_view contents);

}  // namespace lenet
