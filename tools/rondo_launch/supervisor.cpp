#include "supervisor.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <iterator>

#include <fmt/format.h>

#include "guard.hpp"

namespace rondo::launcher {
namespace {

// How much longer another host has than its ranks, to end them and to say so.
constexpr std::chrono::seconds kForAnotherHost{2};
constexpr std::chrono::milliseconds kForLastLines{200};
// The part of the grace in which ranks may end by themselves before they are asked to. Their calls
// fail when a rank ends, so that they can say why.
constexpr int kOwnPartOfGrace = 5;

bool ends_programs(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

// Whether the code is that of a process ended by a signal which neither rondo-launch, in its first
// attempt, nor a user sends to end a program. 255 is none: a rank that returns -1 has it, and an
// ssh that has lost its connection.
bool is_killed(int code) {
  const int signal = code - 128;
  return signal > 0 && signal < NSIG && !ends_programs(signal) && signal != SIGPIPE;
}

}  // namespace

Supervisor::Supervisor(std::chrono::milliseconds grace, const FileDescriptor& alive)
    : grace_(grace), alive_(alive), signals_(launcher::hear_signals()) {
  std::signal(SIGPIPE, SIG_IGN);
}

bool Supervisor::all_ended() const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return process.ended; });
}

int Supervisor::run() {
  // Now that all processes are started: threads and fork() do not go together.
  outputs_ = {std::make_unique<Output>(STDOUT_FILENO), std::make_unique<Output>(STDERR_FILENO)};
  while (!all_ended()) {
    wait_for_events();
    heed_readers();
    keep_deadline();
  }
  kill_all_children();
  show_the_rest();
  return code_;
}

void Supervisor::show_the_rest() {
  const Clock::time_point until = Clock::now() + kForLastLines;
  for (Process& process : processes_) {
    for (std::size_t i = 0; i < process.output.size(); ++i) {
      Lines& lines = process.output[i];
      while (lines.open() && Clock::now() < until) {
        pollfd one{lines.fd(), POLLIN, 0};
        if (::poll(&one, 1, 10) > 0) outputs_[i]->put(lines.take());
      }
      outputs_[i]->put(lines.end());
    }
  }
  // A reader that is slow gets everything, unless the user wants an end.
  for (;;) {
    const bool all_written = outputs_[0]->all_written() && outputs_[1]->all_written();
    // Looked for when nothing can be lost any more. What is told here is yet to be written itself.
    if (tell_losses()) continue;
    if (all_written) return;
    if ((passed_on_ || !guarded_) && Clock::now() > until) return;
    pollfd requests[] = {{outputs_[0]->news(), POLLIN, 0},
                         {outputs_[1]->news(), POLLIN, 0},
                         {guarded_ ? alive_.get() : -1, POLLIN, 0}};
    ::poll(requests, std::size(requests), passed_on_ || !guarded_ ? 10 : -1);
    for (const auto& output : outputs_) output->take_news();
    if (requests[2].revents != 0) hear_guard();
  }
}

bool Supervisor::tell_losses() {
  bool any = false;
  for (const auto& output : outputs_) {
    const std::string why = output->take_loss();
    if (why.empty()) continue;
    outputs_[1]->put(fmt::format("rondo-launch: some of what ranks wrote is lost: {}\n", why));
    any = true;
  }
  return any;
}

// As a program ends that writes to a pipe which nobody reads.
void Supervisor::heed_readers() {
  tell_losses();
  for (const auto& output : outputs_) {
    if (!output->reader_is_gone() || asked_) continue;
    if (code_ == 0) code_ = 128 + SIGPIPE;
    end_all();
  }
}

void Supervisor::wait_for_events() {
  std::vector<pollfd> requests = {{signals_.get(), POLLIN, 0},
                                  {obeys_input_ ? STDIN_FILENO : -1, POLLIN, 0},
                                  {guarded_ ? alive_.get() : -1, POLLIN, 0},
                                  {outputs_[0]->news(), POLLIN, 0},
                                  {outputs_[1]->news(), POLLIN, 0}};
  const std::size_t first_process = requests.size();
  for (const Process& process : processes_) {
    requests.push_back({process.to_tell.empty() ? -1 : process.input.get(), POLLOUT, 0});
  }
  const std::size_t first_source = requests.size();
  struct Source {
    Lines* lines;
    Output* output;
  };
  std::vector<Source> sources;
  for (Process& process : processes_) {
    for (std::size_t i = 0; i < process.output.size(); ++i) {
      Lines& lines = process.output[i];
      if (!lines.open() || !outputs_[i]->has_room()) continue;
      requests.push_back({lines.fd(), POLLIN, 0});
      sources.push_back({&lines, outputs_[i].get()});
    }
  }
  int wait = -1;
  if (ask_at_ || deadline_) {
    const Clock::time_point next = std::min(ask_at_.value_or(Clock::time_point::max()),
                                            deadline_.value_or(Clock::time_point::max()));
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count();
    wait = static_cast<int>(std::max<std::int64_t>(left + 1, 0));
  }
  if (::poll(requests.data(), requests.size(), wait) <= 0) return;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (requests[first_source + i].revents != 0) sources[i].output->put(sources[i].lines->take());
  }
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (requests[first_process + i].revents != 0) processes_[i].tell_more();
  }
  for (const auto& output : outputs_) output->take_news();
  if (requests[2].revents != 0) hear_guard();
  if (requests[1].revents != 0) hear_input();
  if (requests[0].revents != 0) hear_signals();
}

void Supervisor::hear_signals() {
  static_cast<void>(read_signals(signals_));  // the guard's are those that count
  collect_ended();
}

void Supervisor::hear_guard() {
  std::array<unsigned char, 16> numbers{};
  const ssize_t bytes = ::read(alive_.get(), numbers.data(), numbers.size());
  if (bytes < 0 && errno == EINTR) return;
  if (bytes <= 0) {
    guarded_ = false;
    return lose_master();
  }
  for (ssize_t i = 0; i < bytes; ++i) pass_on(numbers[static_cast<std::size_t>(i)]);
}

void Supervisor::hear_input() {
  std::array<char, 256> buffer{};
  const ssize_t bytes = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (bytes < 0 && errno == EINTR) return;
  if (bytes <= 0) {
    obeys_input_ = false;  // the other rondo-launch is gone
    return lose_master();
  }
  input_.append(buffer.data(), static_cast<std::size_t>(bytes));
  for (std::size_t end = input_.find('\n'); end != std::string::npos; end = input_.find('\n')) {
    int signal = 0;
    std::from_chars(input_.data(), input_.data() + end, signal);
    if (is_passed_on(signal)) pass_on(signal);
    if (signal == SIGKILL) {
      for (Process& process : processes_) process.send(SIGKILL);
    }
    input_.erase(0, end + 1);
  }
}

void Supervisor::lose_master() {
  if (code_ == 0) code_ = 128 + SIGHUP;
  end_all();
}

// A second signal that usually ends a program means that the first was not enough.
void Supervisor::pass_on(int signal) {
  const bool again =
      ends_programs(signal) && std::exchange(passed_on_, passed_on_ || ends_programs(signal));
  for (Process& process : processes_) process.send(again ? SIGKILL : signal);
}

void Supervisor::collect_ended() {
  int status = 0;
  for (pid_t id = ::waitpid(-1, &status, WNOHANG); id > 0; id = ::waitpid(-1, &status, WNOHANG)) {
    for (Process& process : processes_) {
      if (process.id == id) note_end(process, status);
    }
  }
}

// Where a rank is killed, the others fail by that, and their ends may be seen first, above all
// those on other hosts. So a signal that nobody here has sent comes before any other reason.
void Supervisor::note_end(Process& process, int status) {
  process.ended = true;
  process.input = FileDescriptor();
  // Others of its group, which it has started and not waited for. Where it ended well they have the
  // time that all have.
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 0) return;
  ::kill(-process.id, SIGKILL);
  // What the first rondo-launch has asked for is no reason in its eyes.
  if (obeys_input_ && passed_on_ && WIFSIGNALED(status)) code = 128 + SIGTERM;
  const bool is_cause = is_killed(code) && (process.is_host || !asked_);
  if (code_ != 0 && (is_killed(code_) || !is_cause)) return;
  code_ = code;
  if (!passed_on_) {  // else it ended as it was told to
    const std::string how = WIFEXITED(status)
                                ? fmt::format("ended with exit code {}", code)
                                : fmt::format("was ended by signal {}", WTERMSIG(status));
    outputs_[1]->put(fmt::format("rondo-launch: {} {}{}\n", process.name, how,
                                 all_ended() ? "" : "; the other ranks are ended"));
  }
  if (!ask_at_ && !asked_) ask_at_ = Clock::now() + grace_ / kOwnPartOfGrace;
  set_deadline();
}

void Supervisor::end_all() {
  ask_at_.reset();
  asked_ = true;
  for (Process& process : processes_) {
    process.send(SIGTERM);
    process.send(SIGCONT);  // it may be suspended
  }
  set_deadline();
}

void Supervisor::set_deadline() {
  if (deadline_) return;
  const bool some_host = std::any_of(processes_.begin(), processes_.end(),
                                     [](const Process& process) { return process.is_host; });
  deadline_ = Clock::now() + grace_ + (some_host ? kForAnotherHost : std::chrono::seconds(0));
}

void Supervisor::keep_deadline() {
  if (ask_at_ && Clock::now() >= *ask_at_) end_all();
  if (!deadline_ || Clock::now() < *deadline_) return;
  for (Process& process : processes_) {
    process.send(SIGKILL);
    if (process.is_host && !process.ended) ::kill(-process.id, SIGKILL);
  }
  deadline_ = Clock::now() + std::chrono::seconds(1);  // until the system has ended them
}

}  // namespace rondo::launcher
