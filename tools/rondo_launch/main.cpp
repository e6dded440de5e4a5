#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "adapters/random_hex.hpp"
#include "guard.hpp"
#include "job.hpp"
#include "options.hpp"
#include "supervisor.hpp"
#include "tools/launch/socket_folder.hpp"
#include "topology/machine.hpp"

namespace rondo::launcher {
namespace {

constexpr int kFailed = 2;

std::chrono::milliseconds grace_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// The hardware threads of rank `local` of `ranks` on this host: as many whole cores as each can
// have, or one core in turn where there are fewer cores than ranks.
std::vector<int> share_of(const std::vector<std::vector<int>>& cores, int local, int ranks) {
  const auto index = static_cast<std::size_t>(local);
  const auto parts = static_cast<std::size_t>(ranks);
  const std::size_t first =
      parts > cores.size() ? index % cores.size() : index * cores.size() / parts;
  const std::size_t end = parts > cores.size() ? first + 1 : (index + 1) * cores.size() / parts;
  std::vector<int> share;
  for (std::size_t core = first; core < end; ++core) {
    share.insert(share.end(), cores[core].begin(), cores[core].end());
  }
  return share;
}

// Starts the ranks of this host.
void start_ranks(Supervisor& supervisor, const Job& job) {
  const std::vector<std::vector<int>> cores =
      job.bind ? detail::usable_cores().cores : std::vector<std::vector<int>>();
  if (job.bind && cores.empty()) {
    throw std::runtime_error("--bind: the system does not say which cores this program may use");
  }
  for (int local = 0; local < job.ranks; ++local) {
    const int rank = job.first_rank + local;
    Start what;
    what.name = fmt::format("rank {}", rank);
    what.prefix = job.prefix ? fmt::format("[{}] ", rank) : "";
    what.folder = job.folder;
    what.environment = job.environment;
    const auto set = [&](const char* name, const std::string& value) {
      what.environment.emplace_back(name, value);
    };
    set("RONDO_RANK", std::to_string(rank));
    set("RONDO_SIZE", std::to_string(job.size));
    set("RONDO_LOCAL_RANK", std::to_string(local));
    set("RONDO_LOCAL_SIZE", std::to_string(job.ranks));
    set("RONDO_STORE", job.store);
    if (!job.secret.empty()) set("RONDO_SECRET", job.secret);
    if (!job.torch_host.empty()) {
      set("RANK", std::to_string(rank));
      set("WORLD_SIZE", std::to_string(job.size));
      set("LOCAL_RANK", std::to_string(local));
      set("LOCAL_WORLD_SIZE", std::to_string(job.ranks));
      set("MASTER_ADDR", job.torch_host);
      set("MASTER_PORT", std::to_string(job.torch_port));
      // Debian's PyTorch 2.6 is built without libuv, and asks for it nevertheless.
      if (std::getenv("USE_LIBUV") == nullptr) set("USE_LIBUV", "0");
    }
    what.command = job.command;
    if (job.bind) what.hardware_threads = share_of(cores, local, job.ranks);
    supervisor.add(start(what));
  }
}

int random_port() {
  std::random_device device;
  // Below those that systems give to connections by themselves.
  return std::uniform_int_distribution<int>(20000, 32000)(device);
}

// PyTorch's own meeting is beside that of Rondo.
void meet_by_torch_at(const std::string& host, Job& job) {
  job.torch_host = host;
  do {
    job.torch_port = random_port();
  } while (job.store.ends_with(":" + std::to_string(job.torch_port)));
}

// As a shell takes it for one word.
std::string quoted(const std::string& word) {
  std::string result = "'";
  for (const char letter : word)
    result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return result + "'";
}

std::vector<std::pair<std::string, std::string>> forwarded_variables(
    const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const bool wanted =
        name.starts_with("RONDO_") || std::find(names.begin(), names.end(), name) != names.end();
    if (wanted && equals != std::string::npos)
      variables.emplace_back(name, text.substr(equals + 1));
  }
  return variables;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.empty()) throw std::runtime_error("--ssh names no command");
  return words;
}

bool is_this_host(const std::string& host) {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return host == "localhost" || host == name.data();
}

// Ranks on several hosts: one rondo-launch on each of them starts those of its host.
int run_on_hosts(const Options& options, const FileDescriptor& alive) {
  Supervisor supervisor(grace_of(options.grace_seconds), alive);
  Job job;
  job.grace_seconds = options.grace_seconds;
  job.bind = options.bind;
  job.prefix = options.prefix;
  job.folder = std::filesystem::current_path().string();
  job.command = options.command;
  job.environment = forwarded_variables(options.forwarded);
  job.secret = adapters::random_hex();
  const std::string first = options.hosts[0].host.substr(options.hosts[0].host.rfind('@') + 1);
  job.store = fmt::format(
      fmt::runtime(first.find(':') == std::string::npos ? "tcp://{}:{}" : "tcp://[{}]:{}"), first,
      options.port != 0 ? options.port : random_port());
  if (options.torch) meet_by_torch_at(first, job);
  for (const HostRanks& host : options.hosts) job.size += host.ranks;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  for (const HostRanks& host : options.hosts) {
    job.ranks = host.ranks;
    Start what;
    what.name = "host " + host.host;
    what.is_host = true;
    if (is_this_host(host.host)) {
      what.command = {self, "--serve"};
    } else {
      what.command = words_of(options.ssh);
      what.command.push_back(host.host);
      what.command.push_back(quoted(self) + " --serve");
    }
    Process process = start(what);
    process.tell(to_line(job));
    supervisor.add(std::move(process));
    job.first_rank += host.ranks;
  }
  return supervisor.run();
}

// On another host: starts what the first rondo-launch says.
int serve(const FileDescriptor& alive) {
  std::string line;
  for (char letter = 0; letter != '\n'; line += letter) {
    if (::read(STDIN_FILENO, &letter, 1) != 1)
      return kFailed;  // byte by byte: signals' numbers follow
  }
  const Job job = parse_job(line);
  Supervisor supervisor(grace_of(job.grace_seconds), alive);
  supervisor.obey_input();
  start_ranks(supervisor, job);
  return supervisor.run();
}

// A folder for the ranks' socket.
class Folder {
 public:
  Folder() : path_(launch::make_socket_folder("rondo-launch")) {}
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int run_here(const Options& options, const Folder& folder, const FileDescriptor& alive) {
  Supervisor supervisor(grace_of(options.grace_seconds), alive);
  Job job;
  job.ranks = job.size = std::max(options.ranks, 1);
  job.store = "unix://" + folder.path() + "/socket";
  job.bind = options.bind;
  job.prefix = options.prefix;
  job.command = options.command;
  if (options.torch) meet_by_torch_at("127.0.0.1", job);
  start_ranks(supervisor, job);
  return supervisor.run();
}

int run(const Options& options) {
  if (options.serves) return under_guard(serve);
  if (!options.hosts.empty()) {
    return under_guard([&](const FileDescriptor& alive) { return run_on_hosts(options, alive); });
  }
  const Folder folder;  // removed by both processes, whichever is left
  return under_guard([&](const FileDescriptor& alive) { return run_here(options, folder, alive); });
}

}  // namespace
}  // namespace rondo::launcher

int main(int argc, char** argv) {
  const rondo::launcher::Options options = rondo::launcher::parse(argc, argv);
  try {
    return rondo::launcher::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rondo-launch: {}\n", error.what());
    return rondo::launcher::kFailed;
  }
}
