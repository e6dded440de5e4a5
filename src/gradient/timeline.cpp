// Chrome's trace event format ("Trace Event Format", Google, 2016): complete events ("X") for what
// cannot overlap in a row, asynchronous pairs ("b", "e") for buckets that wait side by side.

#include "gradient/timeline.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "base/write_signals.hpp"
#include "gradient/agreement.hpp"

namespace rondo::detail {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 4> kRowNames = {"compute", "queue", "transfer", "reduce"};

double microseconds(Clock::time_point time) {
  return std::chrono::duration<double, std::micro>(time.time_since_epoch()).count();
}

// Returns how far this rank's clock is ahead of rank 0's: the median of several differences, for
// which both ranks read their clocks as a barrier ends. 0 on rank 0's host, where ranks share a
// clock.
double ahead_us(Communicator& communicator) {
  constexpr int kRounds = 17;
  const std::vector<RankPlace>& places = communicator.topology().places;
  const bool same = on_one_host(places[Index(communicator.rank())], places[0]);
  std::array<double, kRounds> ahead{};
  for (double& difference : ahead) {
    communicator.barrier();
    const double mine = microseconds(Clock::now());
    std::array<double, 1> first = {mine};
    communicator.broadcast(first, 0);
    difference = mine - first[0];
  }
  std::nth_element(ahead.begin(), ahead.begin() + kRounds / 2, ahead.end());
  return same ? 0 : ahead[kRounds / 2];
}

json row_name(int rank, std::size_t row) {
  return {{"name", "thread_name"},
          {"ph", "M"},
          {"pid", rank},
          {"tid", row},
          {"args", {{"name", kRowNames[row]}}}};
}

// JSON text without the list's brackets, so that it can be joined to the text of other ranks.
std::string events_of(const std::vector<Stretch>& stretches, int rank, double ahead) {
  json events = json::array();
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", rank},
                    {"args", {{"name", fmt::format("rank {}", rank)}}}});
  for (std::size_t row = 0; row < kRowNames.size(); ++row) events.push_back(row_name(rank, row));
  std::uint64_t number = 0;
  for (const Stretch& stretch : stretches) {
    const auto row = static_cast<std::size_t>(stretch.row);
    json event = {{"name", stretch.what},
                  {"cat", kRowNames[row]},
                  {"pid", rank},
                  {"tid", row},
                  {"ts", microseconds(stretch.begin) - ahead},
                  {"args", {{"iteration", stretch.iteration}, {"bytes", stretch.bytes}}}};
    if (stretch.row != Row::queue) {
      event["ph"] = "X";
      event["dur"] = microseconds(stretch.end) - microseconds(stretch.begin);
      events.push_back(std::move(event));
      continue;
    }
    event["ph"] = "b";
    event["id"] = fmt::format("{}.{}", rank, number++);
    events.push_back(event);
    event["ph"] = "e";
    event["ts"] = microseconds(stretch.end) - ahead;
    events.push_back(std::move(event));
  }
  // Bytes in names that are not UTF-8 are replaced.
  const std::string text = events.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

std::string write_file(const std::string& file, const std::string& events) {
  const WriteSignalsHeld held;
  errno = 0;
  std::ofstream out(file, std::ios::trunc);
  out << R"({"displayTimeUnit":"ms","traceEvents":[)" << events << "]}\n";
  out.close();
  return out ? std::string()
             : fmt::format("write_trace: '{}' cannot be written: {}{}", file, std::strerror(errno),
                           errno == EFBIG ? " (ulimit -f)" : "");
}

}  // namespace

void write_timelines(Communicator& communicator, const std::vector<Stretch>& mine,
                     const std::string& file) {
  const double ahead = ahead_us(communicator);
  const std::string own = events_of(mine, communicator.rank(), ahead);
  std::string all;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const std::string theirs = shared_text(communicator, own, rank);
    if (communicator.rank() != 0) continue;
    all += (rank > 0 ? ",\n" : "") + theirs;
  }
  const std::string objection = shared_text(
      communicator, communicator.rank() == 0 ? write_file(file, all) : std::string(), 0);
  if (!objection.empty()) throw UsageError(objection);
}

}  // namespace rondo::detail
