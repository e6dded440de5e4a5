#include "replace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>

namespace lenet {
namespace {

// The last of the files to which symbolic links lead, also if it is not there yet.
std::string target_of(const std::string& file) {
  constexpr int kMostLinks = 40;  // as Linux has it
  std::filesystem::path target = file;
  for (int links = 0; links < kMostLinks && std::filesystem::is_symlink(target); ++links) {
    target = target.parent_path() / std::filesystem::read_symlink(target);
  }
  return target.string();
}

[[noreturn]] void fail(const std::string& file, int error) {
  throw std::runtime_error(fmt::format("'{}' cannot be written: {}", file, std::strerror(error)));
}

// The errno of what fails; 0 if nothing does. `mode`: who may read and write the file, if it is
// set; else as for every new file.
int write_to(const std::string& file, std::string_view contents, std::optional<mode_t> mode = {}) {
  constexpr mode_t kForAll = 0666;  // less the umask
  const int descriptor =
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode.value_or(kForAll));
  if (descriptor < 0) return errno;
  int error = 0;
  if (mode) static_cast<void>(::fchmod(descriptor, *mode));  // which some file systems do not know
  while (!contents.empty() && error == 0) {
    const ssize_t written = ::write(descriptor, contents.data(), contents.size());
    if (written >= 0) contents.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) error = errno;
  }
  if (error == 0 && ::fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS) error = errno;
  if (::close(descriptor) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

std::string beside(const std::string& file) { return target_of(file) + ".part"; }

void replace_file(const std::string& file, std::string_view contents) {
  const std::filesystem::file_status old = std::filesystem::status(file);
  if (std::filesystem::exists(old) && !std::filesystem::is_regular_file(old)) {
    if (const int error = write_to(file, contents)) fail(file, error);
    return;
  }
  const std::string part = beside(file);
  std::optional<mode_t> mode;
  if (std::filesystem::exists(old)) mode = static_cast<mode_t>(old.permissions());
  ::unlink(part.c_str());  // that of a run which was killed may be for reading only
  int error = write_to(part, contents, mode);
  if (error == 0 && ::rename(part.c_str(), target_of(file).c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(part.c_str());
  fail(file, error);
}

}  // namespace lenet
