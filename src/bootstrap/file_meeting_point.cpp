#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/write_signals.hpp"
#include "bootstrap/contact_listener.hpp"
#include "bootstrap/meeting_point.hpp"
#include "bootstrap/proof.hpp"

namespace rondo::detail {
namespace {

constexpr std::size_t kMostCardBytes = 65536;

// What is in the folder: the contact of rank 0, or why there is none.
struct Found {
  std::optional<Contact> contact = std::nullopt;
  std::string why_not = {};
};

class Folder {
 public:
  Folder(const std::string& path, const NetworkOptions& network)
      : contact_path_(path + "/rondo-rank-0"),
        path_(path),
        given_secret_(network.secret.value_or("")),
        interface_(network.interface.value_or("")) {
    struct stat facts{};
    const bool exists = ::stat(path.c_str(), &facts) == 0;
    if (!exists || !S_ISDIR(facts.st_mode)) {
      throw UsageError(fmt::format("from_store: '{}' is no folder on this host: {}", path,
                                   exists ? "it is something else" : std::strerror(errno)));
    }
    if (!can_prove()) static_cast<void>(prove("", {}));  // throws why
  }

  [[nodiscard]] Listening listen() const;
  [[nodiscard]] Target find() const;

 private:
  [[nodiscard]] Found find_contact() const;
  void leave_contact(const Contact& contact) const;
  // Unless another process has left its own there.
  void remove_contact(const std::string& token) const noexcept;
  // `another_cure`: what also helps, for the error's text.
  void require_mine(uid_t owner, const char* another_cure) const;
  [[noreturn]] void fail_to_write(const char* what) const;

  std::string contact_path_;
  std::string path_;
  std::string given_secret_;
  std::string interface_;
};

Found Folder::find_contact() const {
  const FileDescriptor file(
      ::open(contact_path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts{};
  if (!file.valid()) {
    const int code = errno;
    if (code == EACCES && ::lstat(contact_path_.c_str(), &facts) == 0)
      require_mine(facts.st_uid, "");
    return {std::nullopt, fmt::format("{}: {}", contact_path_, std::strerror(code))};
  }
  if (::fstat(file.get(), &facts) != 0) return {std::nullopt, std::strerror(errno)};
  if (!S_ISREG(facts.st_mode))
    return {std::nullopt, fmt::format("{} is not a regular file", contact_path_)};
  if (given_secret_.empty()) {
    require_mine(facts.st_uid, ", or give all ranks the same secret (RONDO_SECRET)");
  }
  std::string text(kMostCardBytes, '\0');
  const ssize_t bytes = ::read(file.get(), text.data(), text.size());
  if (bytes < 0) return {std::nullopt, fmt::format("{}: {}", contact_path_, std::strerror(errno))};
  text.resize(static_cast<std::size_t>(bytes));
  try {
    return {parse_contact(text)};
  } catch (const UsageError& error) {
    return {std::nullopt, fmt::format("{}: {}", contact_path_, error.what())};
  }
}

void Folder::require_mine(uid_t owner, const char* another_cure) const {
  if (owner == ::geteuid()) return;
  throw TransportError(fmt::format(
      "from_store: {} belongs to user {}, and this process to user {}: remove that file, or choose "
      "a folder that only you may write to{}",
      contact_path_, owner, ::geteuid(), another_cure));
}

void Folder::fail_to_write(const char* what) const {
  const int code = errno;
  struct stat facts{};
  // In a folder for all users, such as /tmp, nobody may replace the file of another user.
  if (code == EPERM && ::lstat(contact_path_.c_str(), &facts) == 0 && facts.st_uid != ::geteuid()) {
    throw TransportError(
        fmt::format("from_store: rank 0 cannot replace {}, which belongs to user {}, while this "
                    "process belongs to user {}: remove it, or "
                    "choose a folder that only you may write to",
                    contact_path_, facts.st_uid, ::geteuid()));
  }
  throw TransportError(fmt::format("from_store: rank 0 cannot {} in {}: {}{}", what, path_,
                                   std::strerror(code),
                                   code == EFBIG ? "; allow larger files (ulimit -f)" : ""));
}

// Under another name first, so that nobody reads a part of it.
void Folder::leave_contact(const Contact& contact) const {
  const WriteSignalsHeld held;
  const std::string text = to_text(contact);
  const std::string draft = fmt::format("{}.{}", contact_path_, contact.token.substr(0, 16));
  const FileDescriptor file(
      ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file.valid()) fail_to_write("make a file");
  const bool written =
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file.get()) == 0 && ::rename(draft.c_str(), contact_path_.c_str()) == 0;
  if (!written) {
    const int code = errno;
    ::unlink(draft.c_str());
    errno = code;
    fail_to_write("write a file");
  }
  const FileDescriptor folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) static_cast<void>(::fsync(folder.get()));
}

void Folder::remove_contact(const std::string& token) const noexcept {
  try {
    const Found found = find_contact();
    if (found.contact && found.contact->token == token) ::unlink(contact_path_.c_str());
  } catch (const std::exception&) {
    // Another user has put a file there.
  }
}

Listening Folder::listen() const {
  Listening listening;
  ListeningContact made = [&] {
    try {
      return listen_with_contact(interface_);
    } catch (const UsageError&) {
      listening.refusal = std::current_exception();
      return listen_with_contact("");
    }
  }();
  leave_contact(made.contact);
  const std::string token = made.contact.token;
  listening.sign = std::shared_ptr<void>(
      nullptr, [folder = *this, token](void*) { folder.remove_contact(token); });
  listening.listeners = std::move(made.listeners);
  listening.secret = given_secret_ + token;
  listening.objection = [folder = *this, token]() -> std::string {
    const Found found = folder.find_contact();
    if (!found.contact || found.contact->token == token) return {};
    return fmt::format("from_store: another process came to file://{} as rank 0", folder.path_);
  };
  return listening;
}

Target Folder::find() const {
  const Found found = find_contact();
  if (!found.contact) return {.why_not = found.why_not};
  Target target = target_of(*found.contact);
  target.secret = given_secret_ + found.contact->token;
  return target;
}

}  // namespace

MeetingPoint meet_in_folder(const std::string& folder, std::string run,
                            const NetworkOptions& network) {
  const auto place = std::make_shared<const Folder>(folder, network);
  return {.name = "file://" + folder,
          .caller = "from_store",
          .run = std::move(run),
          .may_be_stale = true,
          .if_silent =
              "rank 0, or one of an earlier run, has left a file there, and does not "
              "answer: ",
          .looks_for_another = 1,
          .listen = [place](Clock::time_point) { return place->listen(); },
          .find = [place](Clock::time_point, std::uint16_t) { return place->find(); }};
}

}  // namespace rondo::detail
