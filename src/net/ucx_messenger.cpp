#include "net/ucx_messenger.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <sched.h>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/index.hpp"
#include "net/ucx_exchange.hpp"
#include "net/ucx_worker.hpp"

namespace rondo::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kConnectTag = 3;
constexpr int kLeaveTag = 4;
// A process whose connection is lost may have ended all its calls, and this call may end without
// it: so a rank that waits fails only if nothing has arrived for so long since.
constexpr auto kDoubt = std::chrono::milliseconds(500);

// UCX matches messages by one number: the group's, the sender's rank, and the tag.
constexpr unsigned kTagBits = 12;
constexpr unsigned kRankBits = 16;
constexpr std::uint64_t kEveryTag = (std::uint64_t{1} << kTagBits) - 1;
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
        leaving_(addresses_.size()) {
    const auto lock = worker_->lock();
    worker_->leftovers().sweep(worker_->handle());
  }
  ~UcxMessenger() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(addresses_.size()); }
  Operation send(int peer, int tag, const void* data, std::size_t bytes,
                 Delivery delivery) override;
  Operation receive(int peer, int tag, void* data, std::size_t bytes) override;
  void look(std::span<const Pending> pending, std::vector<std::size_t>& ended) override;
  [[nodiscard]] bool has_left(int peer) override {
    const auto lock = worker_->lock();
    return knows_left(peer);
  }
  void cancel(Operation& operation) override;
  void abandon(Operation& operation) noexcept override { cancel(operation); }
  void connect(const std::vector<int>& ranks) override;
  std::unique_ptr<Messenger> another(std::uint64_t session) override {
    return with_patience(std::make_unique<UcxMessenger>(worker_, rank_, addresses_, session));
  }
  std::unique_ptr<Messenger> among(const std::vector<int>& ranks, std::uint64_t session) override;
  // The worker has a lock of its own.
  [[nodiscard]] bool can_be_used() const override { return true; }
  // Its session is not used again, and what is left for it is thrown away (ucx_leftovers.hpp).
  [[nodiscard]] bool may_end_any_time() const override { return true; }
  [[nodiscard]] std::string objection_to_this_thread() const override { return {}; }
  [[nodiscard]] std::string objection_to_progress_thread() const override { return {}; }

 private:
  // Only this messenger uses it.
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
  // Closes the operation if it has ended well.
  bool close_if_ended(Operation& operation);
  // Closes the first one that has failed, and throws why.
  void fail_if_failed(std::span<const Pending> pending);
  void fail_if_lost(std::span<const Pending> pending);
  [[nodiscard]] bool knows_left(int peer);

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
  const std::string towards = peer == kAnyPeer ? "" : fmt::format(" (rank {})", peer);
  const std::string text = fmt::format(
      "{}{} failed: that process has ended, or its host is not reached any more (UCX: {}). Look at "
      "that rank's output",
      what, towards, ucx_text(status));
  if (peer == kAnyPeer) throw TransportError(text);
  throw ConnectionLost(peer, text);
}

UcxEndpoint& UcxMessenger::endpoint_of(int peer) {
  UcxEndpoint*& endpoint = endpoints_[Index(peer)];
  if (endpoint == nullptr) endpoint = &worker_->endpoint_to(addresses_[Index(peer)]);
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

bool UcxMessenger::close_if_ended(Operation& operation) {
  if (operation.handle != nullptr) {
    const ucs_status_t status = ucx().request_check_status(operation.handle);
    if (status != UCS_OK && status != UCS_ERR_CANCELED) return false;
    ucx().request_free(operation.handle);
  }
  operation = {};
  return true;
}

void UcxMessenger::fail_if_failed(std::span<const Pending> pending) {
  for (const Pending& one : pending) {
    const ucs_status_t status = ucx().request_check_status(one.operation->handle);
    if (status == UCS_INPROGRESS) continue;
    ucx().request_free(one.operation->handle);
    *one.operation = {};
    fail(one.what, one.peer, status);
  }
}

void UcxMessenger::look(std::span<const Pending> pending, std::vector<std::size_t>& ended) {
  ended.clear();
  const auto lock = worker_->lock();
  worker_->progress();
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (close_if_ended(*pending[i].operation)) ended.push_back(i);
  }
  if (!ended.empty()) {
    last_ended_ = Clock::now();
    return;
  }
  fail_if_failed(pending);
  fail_if_lost(pending);
}

// UCX does not end a receive when its sender is lost, since any process may send what it waits for.
void UcxMessenger::fail_if_lost(std::span<const Pending> pending) {
  for (const Pending& one : pending) {
    if (one.peer == kAnyPeer) continue;
    const UcxEndpoint* endpoint = endpoints_[Index(one.peer)];
    if (endpoint == nullptr || endpoint->failure == UCS_OK || knows_left(one.peer)) continue;
    if (Clock::now() - std::max(endpoint->failed_at, last_ended_) < kDoubt) continue;
    fail(one.what, one.peer, endpoint->failure);
  }
}

bool UcxMessenger::knows_left(int peer) {
  Operation& leaving = leaving_[Index(peer)];
  if (!listens_for_leaving_) return false;
  return !leaving.under_way || close_if_ended(leaving);
}

void UcxMessenger::cancel(Operation& operation) {
  const auto lock = worker_->lock();
  if (operation.handle != nullptr) {
    ucx().request_cancel(worker_->handle(), operation.handle);
  }
}

// UCX makes connections only while both sides call it. So a rank leaves this function only after
// every other rank has confirmed, in the second exchange, that its first exchange has ended.
void UcxMessenger::connect(const std::vector<int>& ranks) {
  const auto give_up = Clock::now() + patience();
  exchange_empty_messages(ranks, give_up);
  for (const int rank : ranks) {
    leaving_[Index(rank)] = receive(rank, kLeaveTag, nullptr, 0);
  }
  listens_for_leaving_ = true;
  try {
    // A second longer than the ranks that lack a connection wait for it.
    exchange_empty_messages(ranks, give_up + std::chrono::seconds(1));
  } catch (const ConnectionLost&) {
    throw;
  } catch (const TransportError& error) {
    throw OthersNotConnected(error.what());
  }
}

void UcxMessenger::exchange_empty_messages(const std::vector<int>& ranks,
                                           Clock::time_point give_up) {
  std::vector<Operation> open(2 * ranks.size());
  std::vector<Pending> pending;
  const auto cancel_open = [&] {
    const auto lock = worker_->lock();
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (open[i].handle == nullptr) continue;
      const bool is_send = i % 2 == 1;
      // Null where it could not be made.
      UcxEndpoint* endpoint = endpoints_[Index(ranks[i / 2])];
      if (is_send && endpoint != nullptr) endpoint->is_stuck = true;
      if (!is_send) ucx().request_cancel(worker_->handle(), open[i].handle);
      ucx().request_free(open[i].handle);
    }
  };
  try {
    std::optional<ConnectionLost> lost;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      open[2 * i] = receive(ranks[i], kConnectTag, nullptr, 0);
      try {
        open[2 * i + 1] = send(ranks[i], kConnectTag, nullptr, 0, Delivery::taken);
      } catch (const TransportError& error) {
        const std::string text =
            fmt::format("rank {} cannot connect to rank {}: {}", rank_, ranks[i], error.what());
        if (!lost) lost = ConnectionLost(ranks[i], text);
        continue;
      }
      pending.push_back({&open[2 * i], "connecting", ranks[i]});
      pending.push_back({&open[2 * i + 1], "connecting", ranks[i]});
    }
    end_ucx_exchange(*this, pending, give_up, std::move(lost));
  } catch (...) {
    cancel_open();
    throw;
  }
}

std::unique_ptr<Messenger> UcxMessenger::among(const std::vector<int>& ranks,
                                               std::uint64_t session) {
  std::vector<std::string> addresses;
  addresses.reserve(ranks.size());
  for (const int rank : ranks) addresses.push_back(addresses_[Index(rank)]);
  const auto mine = std::find(ranks.begin(), ranks.end(), rank_);
  return with_patience(std::make_unique<UcxMessenger>(
      worker_, static_cast<int>(mine - ranks.begin()), std::move(addresses), session));
}

// Sends a message to the others, so that they do not take this rank's end for a failure.
UcxMessenger::~UcxMessenger() {
  const auto lock = worker_->lock();
  for (int rank = 0; rank < size(); ++rank) {
    const auto peer = static_cast<std::size_t>(rank);
    if (endpoints_[peer] == nullptr) continue;
    try {
      const Operation said = start_send(rank, kLeaveTag, nullptr, 0, Delivery::sent);
      if (said.handle != nullptr) ucx().request_free(said.handle);
      if (!listens_for_leaving_) leaving_[peer] = start_receive(rank, kLeaveTag, nullptr, 0);
    } catch (const TransportError&) {
      // That rank is gone.
    }
    worker_->leftovers().add(worker_->handle(),
                             {tag_of(rank, 0), ~kEveryTag, leaving_[peer].handle},
                             endpoints_[peer]->failure == UCS_OK);
  }
  worker_->progress();
  worker_->leftovers().sweep(worker_->handle());
}

class NetworkOfProcess final : public UcxNetwork {
 public:
  explicit NetworkOfProcess(const std::string& interface)
      : worker_(UcxWorker::of_process(interface)) {}
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
  return std::make_unique<NetworkOfProcess>(interface);
}

}  // namespace rondo::detail
