// Keeps watch over processes: shows what they write, passes signals on, and ends all when one
// fails.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "output.hpp"
#include "process.hpp"

namespace rondo::launcher {

class Supervisor {
 public:
  // Blocks the signals that it passes on, in this thread: make it before any process is started.
  // Ends all when `alive` hangs up (guard.hpp).
  Supervisor(std::chrono::milliseconds grace, const FileDescriptor& alive);

  void add(Process process) { processes_.push_back(std::move(process)); }
  // Takes the numbers of signals to pass on from standard input, line by line. At its end, ends
  // all.
  void obey_input() { obeys_input_ = true; }
  // Until all have ended, and nothing that they have started is left. Returns the exit code of the
  // first that failed: what it returned, or 128 and the number of the signal that ended it; 0 if
  // none failed.
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  void wait_for_events();
  // Shows what has come from ranks that have ended, as long as somebody reads it.
  void show_the_rest();
  void heed_readers();
  // False if there were none since the last call.
  bool tell_losses();
  void hear_signals();
  void hear_guard();
  void hear_input();
  void pass_on(int signal);
  void collect_ended();
  void note_end(Process& process, int status);
  void end_all();
  // Kills what has no more time.
  void set_deadline();
  void keep_deadline();
  // Whoever started this process is gone.
  void lose_master();
  [[nodiscard]] bool all_ended() const;

  std::chrono::milliseconds grace_;
  const FileDescriptor& alive_;
  bool guarded_ = true;
  FileDescriptor signals_;
  std::vector<Process> processes_;
  bool obeys_input_ = false;
  std::string input_;
  int code_ = 0;
  bool passed_on_ = false;                          // a signal that usually ends a program
  bool asked_ = false;                              // the ranks to end
  std::array<std::unique_ptr<Output>, 2> outputs_;  // for what ranks write, and for their errors
  std::optional<Clock::time_point>
      ask_at_;  // when ranks are asked to end that have not ended by themselves
  std::optional<Clock::time_point> deadline_;
};

}  // namespace rondo::launcher
