#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>
#include <rondo/version.hpp>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace rondo::launcher {

std::vector<HostRanks> parse_hosts(const std::string& text) {
  std::vector<HostRanks> hosts;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    // "node1", "node1:2", "fd00::1", "[fd00::1]:2".
    HostRanks host{part, 1};
    const std::size_t close = part.starts_with('[') ? part.find(']') : std::string::npos;
    const bool closed = close != std::string::npos;
    const bool follows = closed && close + 1 < part.size();
    if ((part.find('[') != std::string::npos && !closed) || (follows && part[close + 1] != ':')) {
      throw std::invalid_argument(fmt::format("'{}' must be like node1:4 or [fd00::1]:4", part));
    }
    std::size_t colon = close == std::string::npos ? part.find(':') : close + 1;
    if (close == std::string::npos && part.find(':', colon + 1) != std::string::npos) {
      colon = std::string::npos;  // an IPv6 address without a number of ranks
    }
    if (close != std::string::npos) host.host = part.substr(1, close - 1);
    if (colon < part.size()) {
      if (close == std::string::npos) host.host = part.substr(0, colon);
      const char* end = part.data() + part.size();
      const auto [stop, error] = std::from_chars(part.data() + colon + 1, end, host.ranks);
      if (error != std::errc{} || stop != end || host.ranks < 1) {
        throw std::invalid_argument(
            fmt::format("'{}' must be a host and how many ranks it has, such as node1:4", part));
      }
    }
    // A host that begins with '-' would be an option of ssh.
    if (host.host.empty() || host.host[0] == '-') {
      throw std::invalid_argument(fmt::format("'{}' names no host", part));
    }
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) throw std::invalid_argument("no host is named");
  const auto is_local = [](const HostRanks& host) { return host.host == "localhost"; };
  if (std::any_of(hosts.begin(), hosts.end(), is_local) &&
      !std::all_of(hosts.begin(), hosts.end(), is_local)) {
    throw std::invalid_argument("beside other hosts, name this one as they know it, not localhost");
  }
  return hosts;
}

std::vector<HostRanks> place(const std::vector<HostRanks>& hosts, int ranks) {
  std::vector<HostRanks> placed;
  int left = ranks;
  for (const HostRanks& host : hosts) {
    if (ranks > 0 && left == 0) break;
    const int here = ranks > 0 ? std::min(left, host.ranks) : host.ranks;
    placed.push_back({host.host, here});
    left -= here;
  }
  if (ranks > 0 && left > 0) {
    throw std::invalid_argument(
        fmt::format("the hosts have {} ranks, and {} are to be started", ranks - left, ranks));
  }
  return placed;
}

// The name of the option that the word begins, and what the word has of its value: "--ranks=2",
// "-n2".
struct OptionWord {
  std::string name;
  std::optional<std::string> value = {};
};
OptionWord split_word(const std::string& word) {
  // As mpirun has it.
  if (word == "-np" || word == "--np") return {"-n"};
  for (const std::string_view np : {"--np=", "-np=", "-np"}) {
    if (word.starts_with(np)) return {"-n", word.substr(np.size())};
  }
  const std::size_t end = word.starts_with("--") ? word.find('=') : 2;
  if (end >= word.size()) return {word};
  return {word.substr(0, end), word.substr(end + (word[end] == '=' ? 1 : 0))};
}

// The words of the command line, last first, as CLI11 takes them. It would take an option that it
// does not know for the program.
std::vector<std::string> words_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  for (std::size_t i = 0; i < words.size() && words[i].starts_with('-'); ++i) {
    if (words[i] == "--") break;
    const auto [name, value] = split_word(words[i]);
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option == nullptr) {
      throw CLI::ValidationError(words[i],
                                 "is no option of rondo-launch; the program comes first, "
                                 "and then its own options");
    }
    if (option->get_expected_max() == 0) continue;
    words[i] = name;
    ++i;  // its value
    if (value) words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), *value);
  }
  std::reverse(words.begin(), words.end());
  return words;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Starts the ranks of a program that calls rondo::from_environment(), on this host or on "
      "others by ssh. Each "
      "line that a rank writes is shown with its number. When a rank fails, the others are ended; "
      "the exit code is that "
      "of the first that failed.",
      "rondo-launch");
  std::string hosts;
  app.add_option("-n,--ranks", options.ranks,
                 "how many ranks; without it, those of --hosts, or one")
      ->check(CLI::Range(1, 1'000'000));
  CLI::Option* with_hosts = app.add_option(
      "--hosts", hosts,
      "hosts and their ranks, such as a:2,b:2 or [fd00::1]:2; rank 0 is on the first");
  app.add_option(
         "--ssh", options.ssh,
         "the command that is called as COMMAND HOST PROGRAM... for a host that is not this one")
      ->capture_default_str();
  app.add_option(
         "--port", options.port,
         "where rank 0 listens while ranks of several hosts join; without it, one at random")
      ->check(CLI::Range(1, 65535));
  app.add_option_function<std::string>(
         "--env", [&](const std::string& name) { options.forwarded.push_back(name); },
         "an environment variable that ranks of other hosts get too, as those that begin with "
         "RONDO_ do; may be given several times")
      ->type_name("NAME")
      ->trigger_on_parse();
  app.add_option(
         "--grace", options.grace_seconds,
         "seconds that the other ranks have to end when one has failed; in the first fifth they "
         "may do so by themselves, then they get SIGTERM")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_flag("--bind", options.bind,
               "bind each rank to its share of the cores that this program may use on the host");
  app.add_flag_callback("--no-prefix", [&] { options.prefix = false; }, "show lines as they are");
  app.add_flag(
      "--torch", options.torch,
      "for PyTorch scripts: ranks also get RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, "
      "MASTER_ADDR and MASTER_PORT, as by torchrun");
  app.add_flag("--serve", options.serves)->group("");
  app.set_version_flag("--version", RONDO_VERSION);
  app.prefix_command();
  app.get_formatter()->label("OPTIONS", "OPTIONS] PROGRAM [ARGUMENTS...");
  app.footer("Then the program and its arguments: rondo-launch -n 4 PROGRAM ARGUMENTS");
  try {
    app.parse(words_of(app, argc, argv));
    options.command = app.remaining();
    if (!options.command.empty() && options.command[0] == "--") {
      options.command.erase(options.command.begin());
    }
    if (options.command.empty() && !options.serves) {
      throw CLI::ValidationError("PROGRAM", "name the program to start");
    }
    if (with_hosts->count() > 0) options.hosts = place(parse_hosts(hosts), options.ranks);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  } catch (const std::invalid_argument& error) {
    std::exit(app.exit(CLI::ValidationError("--hosts", error.what())));
  }
  return options;
}

}  // namespace rondo::launcher
