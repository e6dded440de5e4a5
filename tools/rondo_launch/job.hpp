// What is to be started on one host.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rondo::launcher {

// The ranks of one host, as the rondo-launch of that host starts them. It travels as one line of
// JSON.
struct Job {
  int first_rank = 0;
  int ranks = 0;  // on this host
  int size = 0;   // on all hosts
  std::string store;
  std::string secret;      // empty: none
  std::string torch_host;  // where ranks of PyTorch meet; empty: they get no variables for that
  int torch_port = 0;
  double grace_seconds = 0;
  bool bind = false;
  bool prefix = true;
  std::string folder;  // in which the program starts; empty: where this process is
  std::vector<std::pair<std::string, std::string>> environment;  // set for the program
  std::vector<std::string> command;
};

std::string to_line(const Job& job);
// Throws std::runtime_error.
Job parse_job(const std::string& line);

}  // namespace rondo::launcher
