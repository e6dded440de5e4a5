#include "output.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/threads.hpp"

namespace rondo::launcher {
namespace {

// As much as a pipe holds.
constexpr std::size_t kRoom = 65536;

}  // namespace

struct Output::Shared {
  explicit Shared(int descriptor) : to(descriptor), news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!news.valid()) throw std::system_error(errno, std::generic_category(), "eventfd");
  }

  void serve();
  [[nodiscard]] int write_all(std::string_view text) const;

  const int to;
  const detail::FileDescriptor news;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::string waiting;  // to be written
  bool writes = false;  // more is being written
  bool gone = false;
  int loss = 0;  // the errno of what could not be written
  bool told_loss = false;
  bool stops = false;
};

// The errno of what fails; 0 if nothing does.
int Output::Shared::write_all(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = ::write(to, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {  // its reader has made it so
      pollfd room{to, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

void Output::Shared::serve() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return stops || !waiting.empty(); });
    if (stops) return;
    const std::string text = std::exchange(waiting, {});
    writes = true;
    lock.unlock();
    const int error = write_all(text);
    lock.lock();
    writes = false;
    gone |= error == EPIPE;
    if (error != 0 && error != EPIPE && !told_loss) loss = error;
    ::eventfd_write(news.get(), 1);
  }
}

Output::Output(int to) : shared_(std::make_shared<Shared>(to)) {
  detail::start_thread("shows what ranks write", [shared = shared_] { shared->serve(); }).detach();
}

Output::~Output() {
  const std::lock_guard lock(shared_->mutex);
  shared_->stops = true;
  shared_->changed.notify_all();
}

void Output::put(const std::string& text) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->gone) return;
  shared_->waiting += text;
  shared_->changed.notify_all();
}

bool Output::has_room() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->gone || shared_->waiting.size() < kRoom;
}

bool Output::all_written() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->gone || (shared_->waiting.empty() && !shared_->writes);
}

bool Output::reader_is_gone() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->gone;
}

std::string Output::take_loss() {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->loss == 0) return {};
  shared_->told_loss = true;
  return std::strerror(std::exchange(shared_->loss, 0));
}

int Output::news() const { return shared_->news.get(); }

void Output::take_news() {
  eventfd_t times = 0;
  static_cast<void>(::eventfd_read(shared_->news.get(), &times));
}

}  // namespace rondo::launcher
