#include "carrier/ucx_messenger.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <sched.h>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "carrier/ucx_worker.hpp"

namespace rondo::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kConnectTag = 3;
constexpr int kLeaveTag = 4;
// A process whose connection is lost may have ended all its calls, and this call may end without it: so a rank that waits
// fails only if nothing has arrived for so long since.
constexpr auto kDoubt = std::chrono::milliseconds(500);

// UCX matches messages by one number: the group's, the sender's rank, and the tag.
constexpr unsigned kTagBits = 12;
constexpr unsigned kRankBits = 16;
constexpr std::uint64_t kSenderMask = ((std::uint64_t{1} << kRankBits) - 1) << kTagBits;

class UcxMessenger final : public Messenger {
 public:
  UcxMessenger(std::shared_ptr<UcxWorker> worker, int rank, std::vector<std::string> addresses,
               std::uint64_t session)
      : worker_(std::move(worker)),
        rank_(rank),
        addresses_(std::move(addresses)),
        group_(session << (kTagBits + kRankBits)),
        endpoints_(addresses_.size(), nullptr),
        leaving_(addresses_.size()) {}
  ~UcxMessenger() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(addresses_.size()); }
  Operation send(int peer, int tag, const void* data, std::size_t bytes,
                 Delivery delivery) override;
  Operation receive(int peer, int tag, void* data, std::size_t bytes) override;
  void look(std::span<const Pending> pending, std::vector<std::size_t>& ended) override;
  void cancel(Operation& operation) override;
  void abandon(Operation& operation) noexcept override { cancel(operation); }
  void connect(const std::vector<int>& ranks) override;
  std::unique_ptr<Messenger> another(std::uint64_t session) override {
    return with_patience(std::make_unique<UcxMessenger>(worker_, rank_, addresses_, session));
  }
  std::unique_ptr<Messenger> among(const std::vector<int>& ranks, std::uint64_t session) override;
  // The worker has a lock of its own.
  [[nodiscard]] bool can_be_used() const override { return true; }
  [[nodiscard]] std::string objection_to_this_thread() const override { return {}; }
  [[nodiscard]] std::string objection_to_progress_thread() const override { return {}; }

 private:
  // This messenger's.
  std::unique_ptr<Messenger> with_patience(std::unique_ptr<Messenger> other) const {
    other->set_patience(patience());
    return other;
  }
  UcxEndpoint& endpoint_of(int peer);
  [[nodiscard]] ucp_tag_t tag_of(int sender, int tag) const {
    return group_ | (static_cast<std::uint64_t>(sender) << kTagBits) | static_cast<unsigned>(tag);
  }
  // An empty message to each of these ranks, and from it.
  void exchange_empty_messages(const std::vector<int>& ranks, Clock::time_point give_up);
  // The rest, under the worker's lock.
  Operation start_send(int peer, int tag, const void* data, std::size_t bytes, Delivery delivery);
  Operation start_receive(int peer, int tag, void* data, std::size_t bytes);
  bool close_if_ended(const Pending& pending);
  void fail_if_lost(std::span<const Pending> pending);
  [[nodiscard]] bool has_left(int peer);

  std::shared_ptr<UcxWorker> worker_;
  int rank_;
  std::vector<std::string> addresses_;   // by rank
  std::uint64_t group_;                  // in the upper bits
  std::vector<UcxEndpoint*> endpoints_;  // by rank; null until it is used
  std::vector<Operation> leaving_;       // by rank: the message that it has destroyed its messenger
  bool listens_for_leaving_ = false;
  Clock::time_point last_ended_;  // when an operation last ended
};

[[noreturn]] void fail(const char* what, int peer, ucs_status_t status) {
  throw TransportError(
      fmt::format("{}{} failed: that process has ended, or its host is not reached any more (UCX: "
                  "{}). Look at that rank's output",
                  what, peer == kAnyPeer ? "" : fmt::format(" (rank {})", peer), ucx_text(status)));
}

UcxEndpoint& UcxMessenger::endpoint_of(int peer) {
  UcxEndpoint*& endpoint = endpoints_[static_cast<std::size_t>(peer)];
  if (endpoint == nullptr)
    endpoint = &worker_->endpoint_to(addresses_[static_cast<std::size_t>(peer)]);
  return *endpoint;
}

Operation UcxMessenger::start_send(int peer, int tag, const void* data, std::size_t bytes,
                                   Delivery delivery) {
  UcxEndpoint& endpoint = endpoint_of(peer);
  if (endpoint.failure != UCS_OK) fail("sending", peer, endpoint.failure);
  const ucp_request_param_t plain{};
  void* request =
      delivery == Delivery::taken
          ? ucx().tag_send_sync_nbx(endpoint.handle, data, bytes, tag_of(rank_, tag), &plain)
          : ucx().tag_send_nbx(endpoint.handle, data, bytes, tag_of(rank_, tag), &plain);
  if (UCS_PTR_IS_ERR(request)) fail("sending", peer, UCS_PTR_STATUS(request));
  return {request, request != nullptr};  // null: it has ended already
}

Operation UcxMessenger::start_receive(int peer, int tag, void* data, std::size_t bytes) {
  const std::uint64_t mask = peer == kAnyPeer ? ~kSenderMask : ~std::uint64_t{0};
  const ucp_request_param_t plain{};
  void* request = ucx().tag_recv_nbx(worker_->handle(), data, bytes,
                                     tag_of(peer == kAnyPeer ? 0 : peer, tag), mask, &plain);
  if (UCS_PTR_IS_ERR(request)) fail("receiving", peer, UCS_PTR_STATUS(request));
  return {request, true};
}

Operation UcxMessenger::send(int peer, int tag, const void* data, std::size_t bytes,
                             Delivery delivery) {
  const auto lock = worker_->lock();
  return start_send(peer, tag, data, bytes, delivery);
}

Operation UcxMessenger::receive(int peer, int tag, void* data, std::size_t bytes) {
  const auto lock = worker_->lock();
  return start_receive(peer, tag, data, bytes);
}

bool UcxMessenger::close_if_ended(const Pending& pending) {
  Operation& operation = *pending.operation;
  void* request = operation.handle;
  if (request != nullptr) {
    const ucs_status_t status = ucx().request_check_status(request);
    if (status == UCS_INPROGRESS) return false;
    ucx().request_free(request);
    operation.under_way = false;
    if (status != UCS_OK && status != UCS_ERR_CANCELED) fail(pending.what, pending.peer, status);
  }
  operation.under_way = false;
  return true;
}

void UcxMessenger::look(std::span<const Pending> pending, std::vector<std::size_t>& ended) {
  ended.clear();
  const auto lock = worker_->lock();
  worker_->progress();
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (close_if_ended(pending[i])) ended.push_back(i);
  }
  if (!ended.empty()) {
    last_ended_ = Clock::now();
  } else {
    fail_if_lost(pending);
  }
}

// UCX does not end a receive when its sender is lost, since any process may send what it waits for.
void UcxMessenger::fail_if_lost(std::span<const Pending> pending) {
  for (const Pending& one : pending) {
    if (one.peer == kAnyPeer) continue;
    const UcxEndpoint* endpoint = endpoints_[static_cast<std::size_t>(one.peer)];
    if (endpoint == nullptr || endpoint->failure == UCS_OK || has_left(one.peer)) continue;
    if (Clock::now() - std::max(endpoint->failed_at, last_ended_) < kDoubt) continue;
    fail(one.what, one.peer, endpoint->failure);
  }
}

bool UcxMessenger::has_left(int peer) {
  Operation& leaving = leaving_[static_cast<std::size_t>(peer)];
  if (!listens_for_leaving_) return false;
  if (!leaving.under_way) return true;
  return close_if_ended({&leaving, "listening for the end of a rank", peer});
}

void UcxMessenger::cancel(Operation& operation) {
  const auto lock = worker_->lock();
  if (operation.handle != nullptr) {
    ucx().request_cancel(worker_->handle(), operation.handle);
  }
}

// UCX makes connections only while both sides call it. So a rank leaves this function only after every other rank has
// confirmed, in the second exchange, that its first exchange has ended.
void UcxMessenger::connect(const std::vector<int>& ranks) {
  const auto give_up = Clock::now() + patience();
  exchange_empty_messages(ranks, give_up);
  for (const int rank : ranks) {
    leaving_[static_cast<std::size_t>(rank)] = receive(rank, kLeaveTag, nullptr, 0);
  }
  listens_for_leaving_ = true;
  exchange_empty_messages(ranks, give_up);
}

void UcxMessenger::exchange_empty_messages(const std::vector<int>& ranks,
                                           Clock::time_point give_up) {
  std::vector<Operation> open;
  for (const int rank : ranks) {
    open.push_back(receive(rank, kConnectTag, nullptr, 0));
    open.push_back(send(rank, kConnectTag, nullptr, 0, Delivery::taken));
  }
  while (!have_ended(open, "connecting all ranks")) {
    if (Clock::now() > give_up) {
      std::string missing;
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (!open[2 * i].under_way && !open[2 * i + 1].under_way) continue;
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", ranks[i]);
      }
      throw TransportError(fmt::format(
          "rank {} has waited {} ms for UCX to connect it to ranks {}; can these hosts reach each "
          "other, and those ranks all others, at any port, or at those of UCX_TCP_PORT_RANGE?",
          rank_, patience().count(), missing));
    }
    ::sched_yield();
  }
}

std::unique_ptr<Messenger> UcxMessenger::among(const std::vector<int>& ranks,
                                               std::uint64_t session) {
  std::vector<std::string> addresses;
  addresses.reserve(ranks.size());
  for (const int rank : ranks) addresses.push_back(addresses_[static_cast<std::size_t>(rank)]);
  const auto mine = std::find(ranks.begin(), ranks.end(), rank_);
  return with_patience(std::make_unique<UcxMessenger>(
      worker_, static_cast<int>(mine - ranks.begin()), std::move(addresses), session));
}

// Tells the others that this rank's end is no failure.
UcxMessenger::~UcxMessenger() {
  const auto lock = worker_->lock();
  for (std::size_t peer = 0; peer < leaving_.size(); ++peer) {
    const Operation& leaving = leaving_[peer];
    if (leaving.under_way && leaving.handle != nullptr) {
      ucx().request_cancel(worker_->handle(), leaving.handle);
      ucx().request_free(leaving.handle);
    }
    if (endpoints_[peer] == nullptr) continue;
    try {
      const auto rank = static_cast<int>(peer);
      const Operation said = start_send(rank, kLeaveTag, nullptr, 0, Delivery::sent);
      if (said.handle != nullptr) ucx().request_free(said.handle);
    } catch (const TransportError&) {
      // That rank is gone.
    }
  }
  worker_->progress();
}

class Network final : public UcxNetwork {
 public:
  explicit Network(const std::string& interface) : worker_(UcxWorker::of_process(interface)) {}
  [[nodiscard]] const std::string& address() const override { return worker_->address(); }
  [[nodiscard]] std::unique_ptr<Messenger> messenger(int rank, std::vector<std::string> addresses,
                                                     std::uint64_t session) const override {
    return std::make_unique<UcxMessenger>(worker_, rank, std::move(addresses), session);
  }

 private:
  std::shared_ptr<UcxWorker> worker_;
};

}  // namespace

bool has_ucx() { return true; }

std::unique_ptr<UcxNetwork> open_ucx(const std::string& interface) {
  return std::make_unique<Network>(interface);
}

}  // namespace rondo::detail
