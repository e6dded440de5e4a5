#include "output.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
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

  const int to;
  const detail::FileDescriptor news;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::string waiting;  // to be written
  bool writes = false;  // more is being written
  bool gone = false;
  bool stops = false;
};

void Output::Shared::serve() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return stops || !waiting.empty(); });
    if (stops) return;
    const std::string text = std::exchange(waiting, {});
    writes = true;
    lock.unlock();
    std::string_view rest = text;
    bool failed = false;
    while (!rest.empty() && !failed) {
      const ssize_t written = ::write(to, rest.data(), rest.size());
      if (written >= 0) rest.remove_prefix(static_cast<std::size_t>(written));
      failed = written < 0 && errno != EINTR;
    }
    lock.lock();
    writes = false;
    gone |= failed;
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

int Output::news() const { return shared_->news.get(); }

void Output::take_news() {
  eventfd_t times = 0;
  static_cast<void>(::eventfd_read(shared_->news.get(), &times));
}

}  // namespace rondo::launcher
