#include "adapters/mpi/group.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <numeric>
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

// Of a thread's last call, since asking MPI for the attribute takes some 40 ns.
struct LastGroup {
  MPI_Comm comm = MPI_COMM_NULL;
  Group* group = nullptr;
  std::uint64_t ended = 0;  // as groups_ended was then
};
thread_local LastGroup last_group;
// How many groups have ended: MPI may use the handles of their communicators again. ~Group() writes
// it, all threads read it. Relaxed: a thread that has got a new communicator from another one has
// got this number, too, by what the program passes the handle with.
std::atomic<std::uint64_t> groups_ended = 0;

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

// Rondo's communicators end before MPI does, whoever ends MPI: what is attached to MPI_COMM_SELF is
// deleted first.
int end_all(MPI_Comm /*self*/, int /*key*/, void* /*value*/, void* /*extra*/) {
  const Inside inside;
  mpi_is.store(Mpi::ended, std::memory_order_relaxed);
  for (;;) {
    Group* group = nullptr;
    {
      const std::lock_guard lock(lock_of_groups());
      if (all_groups().empty()) break;
      group = all_groups().front();
      std::erase(all_groups(), group);
    }
    // The attribute's function destroys the group.
    if (PMPI_Comm_delete_attr(group->comm(), key_of_groups()) != MPI_SUCCESS) delete group;
  }
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && Summary::of_process().wanted()) Summary::of_process().print();
  return MPI_SUCCESS;
}

void end_with_mpi() {
  static const bool done = [] {
    int key = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_all, &key, nullptr);
    PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    return true;
  }();
  static_cast<void>(done);
}

// Whether all ranks of `comm` were started together. Processes that joined later may run without
// this library.
bool is_of_world(MPI_Comm comm, int size) {
  MPI_Group members = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &members);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::vector<int> in_world(ranks.size(), MPI_UNDEFINED);
  std::iota(ranks.begin(), ranks.end(), 0);
  PMPI_Group_translate_ranks(members, size, ranks.data(), world, in_world.data());
  PMPI_Group_free(&members);
  PMPI_Group_free(&world);
  return std::find(in_world.begin(), in_world.end(), MPI_UNDEFINED) == in_world.end();
}

Group* make_group(MPI_Comm comm) {
  end_with_mpi();
  int between = 0;
  if (PMPI_Comm_test_inter(comm, &between) != MPI_SUCCESS) return nullptr;
  int rank = 0;
  int size = 1;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  const bool suits = between == 0 && is_of_world(comm, size);
  auto group = std::make_unique<Group>(comm, rank, suits ? size : 1);
  if (PMPI_Comm_set_attr(comm, key_of_groups(), group.get()) != MPI_SUCCESS) return nullptr;
  const std::lock_guard lock(lock_of_groups());
  all_groups().push_back(group.get());
  return group.release();
}

}  // namespace

Group::Group(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}

Group::~Group() {
  groups_ended.fetch_add(1, std::memory_order_relaxed);
  completions_.reset();
  communicator_.reset();
  if (messages_ != MPI_COMM_NULL) PMPI_Comm_free(&messages_);
}

Group* Group::of(MPI_Comm comm) {
  if (Inside::is() || comm == MPI_COMM_NULL) return nullptr;
  const std::uint64_t ended = groups_ended.load(std::memory_order_relaxed);
  LastGroup& last = last_group;
  if (last.comm == comm && last.ended == ended) return last.group;
  if (!mpi_is_on()) return nullptr;
  void* value = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, key_of_groups(), static_cast<void*>(&value), &found) !=
      MPI_SUCCESS) {
    return nullptr;
  }
  Group* const group = found != 0 ? static_cast<Group*>(value) : make_group(comm);
  if (group == nullptr) return nullptr;
  last = {comm, group->size_ > 1 ? group : nullptr, ended};
  return last.group;
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

bool Group::takes_in_background(std::size_t bytes) {
  if (!communicator_) {
    ++worth_;
    return false;
  }
  return any_thread_ && takes(bytes);
}

Completions& Group::completions() {
  if (!completions_) completions_ = std::make_unique<Completions>(comm_, messages_);
  return *completions_;
}

void Group::join() {
  const Inside inside;
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  // The least level, and whether some rank has MPI_THREAD_SERIALIZED. There a wait of Rondo's makes
  // no MPI call, since another thread may be in MPI just then (rondo/mpi.hpp); and so a message of
  // the program might stand still for which another rank waits.
  std::array<int, 2> mine = {level, level == MPI_THREAD_SERIALIZED ? 0 : 1};
  std::array<int, 2> least = mine;
  PMPI_Allreduce(mine.data(), least.data(), 2, MPI_INT, MPI_MIN, comm_);
  if (least[1] == 0) return give_up("its thread level is MPI_THREAD_SERIALIZED");
  // Another communicator of the same ranks, to which no attribute is copied: from_mpi() duplicates
  // its own, and the program's functions for attributes are not to hear of that.
  PMPI_Comm_split(comm_, 0, rank_, &messages_);
  PMPI_Comm_set_errhandler(messages_, MPI_ERRORS_RETURN);
  try {
    CommunicatorOptions options;
    options.timeout = kNever;
    communicator_.emplace(from_mpi(messages_, options));
    const auto& edges = communicator_->topology().edges;
    spans_hosts_ = std::any_of(edges.begin(), edges.end(),
                               [](const Edge& edge) { return edge.carrier != Carrier::shm; });
    any_thread_ = least[0] >= MPI_THREAD_MULTIPLE;
  } catch (const Error& error) {  // on all ranks
    give_up(error.what());
  }
  if (!any_thread_) PMPI_Comm_free(&messages_);  // no calls go on in the background
}

void Group::give_up(const std::string& why) {
  given_up_ = true;
  Summary::of_process().note_given_up(why);
}

}  // namespace rondo::mpi_programs
