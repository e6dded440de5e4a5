#include "adapters/mpi/group.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include <rondo/errors.hpp>
#include <rondo/mpi.hpp>

#include "adapters/mpi/summary.hpp"

namespace rondo::mpi_programs {
namespace {

// Ranks are joined in the call in which this many points have been collected: one for each call,
// and one for each 64 KiB of it. Joining takes some milliseconds.
constexpr std::size_t kWorthJoining = 16;
constexpr std::size_t kBytesOfAPoint = std::size_t{64} << 10U;
// Between hosts, MPI is as fast with less.
constexpr std::size_t kLeastBytesBetweenHosts = std::size_t{16} << 10U;
// An MPI program may let others wait in a collective for as long as it likes.
constexpr std::chrono::hours kNever{24 * 365 * 10};

std::mutex& lock_of_groups() {
  static auto* const mutex = new std::mutex();
  return *mutex;
}
std::vector<Group*>& all_groups() {
  static auto* const groups = new std::vector<Group*>();
  return *groups;
}

int forget(MPI_Comm /*comm*/, int /*key*/, void* value, void* /*extra*/) {
  auto* const group = static_cast<Group*>(value);
  {
    const std::lock_guard lock(lock_of_groups());
    std::erase(all_groups(), group);
  }
  const Inside inside;
  delete group;
  return MPI_SUCCESS;
}

// Of the attribute. A duplicate of a communicator begins without one.
int key_of_groups() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &made, nullptr);
    return made;
  }();
  return key;
}

// Whether MPI has begun, and not ended.
enum class Mpi : std::uint8_t { unknown, on, ended };
std::atomic<Mpi> mpi_is = Mpi::unknown;

bool mpi_is_on() {
  // Relaxed: nothing but this value passes from one thread to another.
  const Mpi known = mpi_is.load(std::memory_order_relaxed);
  if (known != Mpi::unknown) return known == Mpi::on;
  int on = 0;
  int ended = 0;
  PMPI_Initialized(&on);
  PMPI_Finalized(&ended);
  if (on == 0 || ended != 0) return false;
  mpi_is.store(Mpi::on, std::memory_order_relaxed);
  return true;
}

Group* make_group(MPI_Comm comm) {
  int between = 0;
  if (PMPI_Comm_test_inter(comm, &between) != MPI_SUCCESS) return nullptr;
  int rank = 0;
  int size = 1;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  auto group = std::make_unique<Group>(comm, rank, between != 0 ? 1 : size);
  if (PMPI_Comm_set_attr(comm, key_of_groups(), group.get()) != MPI_SUCCESS) return nullptr;
  const std::lock_guard lock(lock_of_groups());
  all_groups().push_back(group.get());
  return group.release();
}

}  // namespace

Group::Group(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}

Group* Group::of(MPI_Comm comm) {
  if (Inside::is() || comm == MPI_COMM_NULL || !mpi_is_on()) return nullptr;
  void* value = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, key_of_groups(), static_cast<void*>(&value), &found) !=
      MPI_SUCCESS) {
    return nullptr;
  }
  Group* const group = found != 0 ? static_cast<Group*>(value) : make_group(comm);
  return group != nullptr && group->size_ > 1 ? group : nullptr;
}

void Group::end_all() {
  const Inside inside;
  mpi_is.store(Mpi::ended, std::memory_order_relaxed);
  for (;;) {
    MPI_Comm comm = MPI_COMM_NULL;
    {
      const std::lock_guard lock(lock_of_groups());
      if (all_groups().empty()) return;
      comm = all_groups().front()->comm_;  // on all ranks in the order in which they were made
    }
    PMPI_Comm_delete_attr(comm, key_of_groups());
  }
}

bool Group::takes(std::size_t bytes) {
  if (given_up_) return false;
  if (!communicator_) {
    worth_ += 1 + bytes / kBytesOfAPoint;
    if (worth_ < kWorthJoining) return false;
    join();
    if (given_up_) return false;
  }
  return !spans_hosts_ || bytes >= kLeastBytesBetweenHosts;
}

bool Group::takes_in_background(std::size_t bytes) { return takes(bytes) && any_thread_; }

void Group::join() {
  const Inside inside;
  int mine = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&mine);
  int least = mine;
  PMPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, comm_);
  try {
    CommunicatorOptions options;
    options.timeout = kNever;
    communicator_.emplace(from_mpi(comm_, options));
    const auto& edges = communicator_->topology().edges;
    spans_hosts_ = std::any_of(edges.begin(), edges.end(),
                               [](const Edge& edge) { return edge.carrier != Carrier::shm; });
    any_thread_ = least >= MPI_THREAD_MULTIPLE;
    if (any_thread_) completions_ = std::make_unique<Completions>();
  } catch (const Error& error) {  // on all ranks
    given_up_ = true;
    Summary::of_process().note_given_up(error.what());
  }
}

}  // namespace rondo::mpi_programs
