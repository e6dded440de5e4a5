// Writes the results of a program to a file.
#pragma once

#include <string>

namespace rondo::launch {

// Replaces what the file holds. Throws std::runtime_error with the system's reason if not all of
// `text` is in the file at the end.
void write_file(const std::string& file, const std::string& text);

// To be called first in main(): writes to a file that may not grow (ulimit -f) fail, instead of
// ending the program.
void report_full_files();

}  // namespace rondo::launch
