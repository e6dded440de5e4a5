#include "job.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace rondo::launcher {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Job, first_rank, ranks, size, store, secret, torch_host,
                                   torch_port, grace_seconds, bind, prefix, folder, environment,
                                   command)

std::string to_line(const Job& job) { return nlohmann::json(job).dump() + "\n"; }

Job parse_job(const std::string& line) {
  try {
    return nlohmann::json::parse(line).get<Job>();
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(std::string("rondo-launch was not told what to start: ") +
                             error.what());
  }
}

}  // namespace rondo::launcher
