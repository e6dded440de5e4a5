#include "bootstrap/file_meeting_point.hpp"

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
#include "bootstrap/addresses.hpp"
#include "bootstrap/contact_listener.hpp"
#include "bootstrap/proof.hpp"

namespace rondo::detail {
namespace {

constexpr std::size_t kMostCardBytes = 65536;

// What is in the folder: the contact of rank 0, or why there is none.
struct Found {
  std::optional<Contact> contact = std::nullopt;
  std::string why_not = {};
};

class FileMeetingPoint final : public MeetingPoint {
 public:
  FileMeetingPoint(const std::string& folder, std::string run, const NetworkOptions& network)
      : MeetingPoint(std::move(run)),
        name_("file://" + folder),
        contact_path_(folder + "/rondo-rank-0"),
        folder_(folder),
        given_secret_(network.secret.value_or("")),
        interface_(network.interface.value_or("")) {
    struct stat facts{};
    const bool exists = ::stat(folder.c_str(), &facts) == 0;
    if (!exists || !S_ISDIR(facts.st_mode)) {
      throw UsageError(fmt::format("from_store: '{}' is no folder on this host: {}", folder,
                                   exists ? "it is something else" : std::strerror(errno)));
    }
    if (!can_prove()) static_cast<void>(prove("", {}));  // throws why
  }
  ~FileMeetingPoint() override { close(); }

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] const char* caller() const override { return "from_store"; }
  [[nodiscard]] std::string secret() const override { return given_secret_ + token_; }
  std::vector<FileDescriptor> listen(Clock::time_point deadline) override;
  void close() noexcept override;
  [[nodiscard]] std::string objection_to_myself() const override;
  [[nodiscard]] std::string stranger_name(const FileDescriptor& socket) const override {
    return peer_address_of(socket).text();
  }
  Attempt try_connect(int rank, Clock::time_point deadline) override;
  [[nodiscard]] bool may_be_stale() const override { return true; }
  [[nodiscard]] int looks_for_another() const override { return 1; }

 private:
  [[nodiscard]] Found find_contact() const;
  void leave_contact(const Contact& contact);
  // `another_cure`: what also helps, for the error's text.
  void require_mine(uid_t owner, const char* another_cure) const;
  [[noreturn]] void fail_to_write(const char* what) const;

  std::string name_;
  std::string contact_path_;
  std::string folder_;
  std::string given_secret_;
  std::string interface_;
  std::string token_;     // of the contact that this process has left, or last read
  bool is_left_ = false;  // by this process
};

Found FileMeetingPoint::find_contact() const {
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

void FileMeetingPoint::require_mine(uid_t owner, const char* another_cure) const {
  if (owner == ::geteuid()) return;
  throw TransportError(fmt::format(
      "from_store: {} belongs to user {}, and this process to user {}: remove that file, or choose "
      "a folder that only you may write to{}",
      contact_path_, owner, ::geteuid(), another_cure));
}

void FileMeetingPoint::fail_to_write(const char* what) const {
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
  throw TransportError(fmt::format("from_store: rank 0 cannot {} in {}: {}{}", what, folder_,
                                   std::strerror(code),
                                   code == EFBIG ? "; allow larger files (ulimit -f)" : ""));
}

// Under another name first, so that nobody reads a part of it.
void FileMeetingPoint::leave_contact(const Contact& contact) {
  const WriteSignalsHeld held;
  const std::string text = to_text(contact);
  const std::string draft = fmt::format("{}.{}", contact_path_, token_.substr(0, 16));
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
  is_left_ = true;
  const FileDescriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) static_cast<void>(::fsync(folder.get()));
}

std::vector<FileDescriptor> FileMeetingPoint::listen(Clock::time_point /*deadline*/) {
  ListeningContact made = [&] {
    try {
      return listen_with_contact(interface_);
    } catch (const UsageError&) {
      refuse_all(std::current_exception());
      return listen_with_contact("");
    }
  }();
  token_ = made.contact.token;
  leave_contact(made.contact);
  return std::move(made.listeners);
}

void FileMeetingPoint::close() noexcept {
  if (!std::exchange(is_left_, false)) return;
  try {
    const Found found = find_contact();
    if (found.contact && found.contact->token == token_) ::unlink(contact_path_.c_str());
  } catch (const std::exception&) {
    // Another user has put a file there.
  }
}

std::string FileMeetingPoint::objection_to_myself() const {
  const Found found = find_contact();
  if (!found.contact || found.contact->token == token_) return {};
  return fmt::format("from_store: another process came to {} as rank 0", name_);
}

Attempt FileMeetingPoint::try_connect(int /*rank*/, Clock::time_point deadline) {
  const Found found = find_contact();
  if (!found.contact) return {FileDescriptor(), found.why_not};
  token_ = found.contact->token;
  Attempt attempt = connect_by(*found.contact, deadline);
  if (!attempt.socket.valid()) {
    attempt.why_not = fmt::format(
        "rank 0, or one of an earlier run, has left a file there, and does not answer: {}",
        attempt.why_not);
  }
  return attempt;
}

}  // namespace

std::unique_ptr<MeetingPoint> meet_in_folder(const std::string& folder, std::string run,
                                             const NetworkOptions& network) {
  return std::make_unique<FileMeetingPoint>(folder, std::move(run), network);
}

}  // namespace rondo::detail
