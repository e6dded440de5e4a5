#include "net/mpi_messenger.hpp"

#include <cstring>
#include <utility>

#include "base/check_mpi.hpp"
#include "base/index.hpp"

namespace rondo::detail {
namespace {

constexpr int kConnectTag = 3;
constexpr int kGroupTag = 4;

static_assert(sizeof(MPI_Request) <= sizeof(void*));

Operation operation_of(MPI_Request request) {
  Operation operation{nullptr, true};
  std::memcpy(&operation.handle, &request, sizeof(MPI_Request));
  return operation;
}

MPI_Request request_of(const Operation& operation) {
  MPI_Request request = MPI_REQUEST_NULL;
  std::memcpy(&request, &operation.handle, sizeof(MPI_Request));
  return request;
}

class MpiMessenger final : public Messenger {
 public:
  explicit MpiMessenger(MPI_Comm comm) : comm_(comm) {
    check_mpi(MPI_Query_thread(&thread_level_), "MPI_Query_thread");
    check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  }
  ~MpiMessenger() override { MPI_Comm_free(&comm_); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  Operation send(int peer, int tag, const void* data, std::size_t bytes,
                 Delivery delivery) override;
  Operation receive(int peer, int tag, void* data, std::size_t bytes) override;
  void look(std::span<const Pending> pending, std::vector<std::size_t>& ended) override;
  void cancel(Operation& operation) override;
  void connect(const std::vector<int>& ranks) override;
  std::unique_ptr<Messenger> another(std::uint64_t session) override;
  std::unique_ptr<Messenger> among(const std::vector<int>& ranks, std::uint64_t session) override;
  [[nodiscard]] bool drives_mpi() const override { return true; }
  [[nodiscard]] bool can_be_used() const override;
  [[nodiscard]] std::string objection_to_this_thread() const override;
  [[nodiscard]] std::string objection_to_progress_thread() const override;

 private:
  void note_failure(int code, int done, std::span<const Pending> pending);
  void throw_failure();

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
  int thread_level_ = MPI_THREAD_SINGLE;
  // Used by look() alone; members, so that it allocates nothing.
  std::vector<MPI_Request> requests_;
  std::vector<int> ended_;
  std::vector<MPI_Status> statuses_;
  // An operation that has failed, to be thrown when no other has ended.
  struct Failed {
    int code = MPI_SUCCESS;
    const char* what = "";
    int peer = kAnyPeer;
  };
  Failed failed_;
};

Operation MpiMessenger::send(int peer, int tag, const void* data, std::size_t bytes,
                             Delivery delivery) {
  MPI_Request request = MPI_REQUEST_NULL;
  const auto count = static_cast<int>(bytes);  // at most a slot: 1 GiB
  check_mpi(delivery == Delivery::taken
                ? MPI_Issend(data, count, MPI_BYTE, peer, tag, comm_, &request)
                : MPI_Isend(data, count, MPI_BYTE, peer, tag, comm_, &request),
            "MPI_Isend", peer);
  return operation_of(request);
}

Operation MpiMessenger::receive(int peer, int tag, void* data, std::size_t bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE,
                      peer == kAnyPeer ? MPI_ANY_SOURCE : peer, tag, comm_, &request),
            "MPI_Irecv", peer);
  return operation_of(request);
}

// One MPI call tests all requests, since each such call polls the network.
void MpiMessenger::look(std::span<const Pending> pending, std::vector<std::size_t>& ended) {
  ended.clear();
  requests_.clear();
  for (const Pending& one : pending) requests_.push_back(request_of(*one.operation));
  ended_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int done = 0;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &done,
                                ended_.data(), statuses_.data());
  if (code != MPI_SUCCESS) note_failure(code, done, pending);
  for (int i = 0; i < done; ++i) {  // nothing is done where all have ended earlier: MPI_UNDEFINED
    const auto position = static_cast<std::size_t>(ended_[Index(i)]);
    Operation& operation = *pending[position].operation;
    operation = operation_of(MPI_REQUEST_NULL);
    operation.under_way = false;
    const bool well = code == MPI_SUCCESS || statuses_[Index(i)].MPI_ERROR == MPI_SUCCESS;
    if (well) ended.push_back(position);
  }
  if (ended.empty()) throw_failure();
}

// The statuses say which operation failed, if MPI sets them; else nothing is known of any of them.
void MpiMessenger::note_failure(int code, int done, std::span<const Pending> pending) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  for (int i = 0; error_class == MPI_ERR_IN_STATUS && i < done; ++i) {
    const Index index(i);
    if (statuses_[index].MPI_ERROR == MPI_SUCCESS) continue;
    const Pending& one = pending[Index(ended_[index])];
    if (failed_.code == MPI_SUCCESS) failed_ = {statuses_[index].MPI_ERROR, one.what, one.peer};
  }
  const bool one = pending.size() == 1;
  if (failed_.code == MPI_SUCCESS) {
    check_mpi(code, one ? pending[0].what : "MPI_Testsome", one ? pending[0].peer : kAnyPeer);
  }
}

void MpiMessenger::throw_failure() {
  const Failed failed = std::exchange(failed_, {});
  check_mpi(failed.code, failed.what, failed.peer);
}

void MpiMessenger::cancel(Operation& operation) {
  MPI_Request request = request_of(operation);
  MPI_Cancel(&request);
  operation = operation_of(request);
}

// MPI opens a connection at its first use, and only inside MPI calls; later this rank may make no
// MPI call for a long time.
void MpiMessenger::connect(const std::vector<int>& ranks) {
  std::vector<MPI_Request> open;
  for (const int rank : ranks) {
    check_mpi(MPI_Irecv(nullptr, 0, MPI_BYTE, rank, kConnectTag, comm_,
                        &open.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Irecv", rank);
    check_mpi(MPI_Isend(nullptr, 0, MPI_BYTE, rank, kConnectTag, comm_,
                        &open.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Isend", rank);
  }
  check_mpi(MPI_Waitall(static_cast<int>(open.size()), open.data(), MPI_STATUSES_IGNORE),
            "connecting all ranks");
}

std::unique_ptr<Messenger> MpiMessenger::another(std::uint64_t /*session*/) {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(comm_, &comm), "MPI_Comm_dup");
  return std::make_unique<MpiMessenger>(comm);
}

std::unique_ptr<Messenger> MpiMessenger::among(const std::vector<int>& ranks,
                                               std::uint64_t /*session*/) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  // Fail only for arguments that are wrong on all ranks.
  MPI_Comm_group(comm_, &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  // Other groups of the same ranks may do the same at the same time. MPI waits here without a
  // deadline, but all ranks of the group have agreed to come (joining/wire_processes.cpp): only a
  // process that ends just now keeps the others.
  const int code = MPI_Comm_create_group(comm_, some, kGroupTag, &comm);
  if (some != MPI_GROUP_NULL) MPI_Group_free(&some);
  if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
  check_mpi(code, "MPI_Comm_create_group");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return std::make_unique<MpiMessenger>(comm);
}

bool MpiMessenger::can_be_used() const {
  int gone = 0;
  MPI_Finalized(&gone);
  return gone == 0;
}

std::string MpiMessenger::objection_to_this_thread() const {
  if (thread_level_ >= MPI_THREAD_SERIALIZED) return {};
  int main = 0;
  check_mpi(MPI_Is_thread_main(&main), "MPI_Is_thread_main");
  if (main != 0) return {};
  return "a call with MPI edges was made from a thread other than MPI's main thread, and MPI was "
         "initialised with less than MPI_THREAD_SERIALIZED; call from the main thread, or ask "
         "MPI_Init_thread for MPI_THREAD_SERIALIZED";
}

std::string MpiMessenger::objection_to_progress_thread() const {
  if (thread_level_ >= MPI_THREAD_MULTIPLE) return {};
  return "an asynchronous call with MPI edges uses MPI on Rondo's progress thread, which needs "
         "MPI_THREAD_MULTIPLE; ask MPI_Init_thread for it, or make blocking calls";
}

}  // namespace

std::unique_ptr<Messenger> message_by_mpi(MPI_Comm comm) {
  return std::make_unique<MpiMessenger>(comm);
}

}  // namespace rondo::detail
