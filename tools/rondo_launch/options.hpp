// The command line of rondo-launch.
#pragma once

#include <string>
#include <vector>

namespace rondo::launcher {

struct HostRanks {
  std::string host;
  int ranks = 1;
};

struct Options {
  int ranks = 0;  // 0: those of the hosts, or 1
  std::vector<HostRanks> hosts;
  std::string ssh = "ssh";
  int port = 0;  // 0: chosen at random
  double grace_seconds = 5;
  bool bind = false;
  bool prefix = true;
  bool torch = false;   // ranks also get the variables that torchrun sets
  bool serves = false;  // another rondo-launch has started this one, and tells it what to start
  std::vector<std::string> forwarded;  // names of environment variables for other hosts
  std::vector<std::string> command;
};

// Exits the program after --help, --version or an error.
Options parse(int argc, char** argv);

// "a:2,b" is two ranks on a and one on b; an IPv6 address has brackets where a number follows.
// Throws std::invalid_argument.
std::vector<HostRanks> parse_hosts(const std::string& text);
// The first `ranks` ranks of these hosts; all of them if 0. Throws std::invalid_argument if the
// hosts have not so many.
std::vector<HostRanks> place(const std::vector<HostRanks>& hosts, int ranks);

}  // namespace rondo::launcher
