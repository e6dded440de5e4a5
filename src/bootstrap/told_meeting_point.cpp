#include "bootstrap/told_meeting_point.hpp"

#include <array>
#include <exception>
#include <utility>
#include <vector>

#include <rondo/errors.hpp>

#include "base/put.hpp"
#include "bootstrap/addresses.hpp"
#include "bootstrap/contact_listener.hpp"

namespace rondo::detail {
namespace {

using CardText = std::array<char, 8192>;  // an empty one where rank 0 does not listen

class ToldMeetingPoint final : public MeetingPoint {
 public:
  ToldMeetingPoint(Bootstrap& ranks, std::string interface)
      : ranks_(ranks), interface_(std::move(interface)) {
    if (ranks_.rank() == 0) return;
    const CardText text = ranks_.exchange(CardText{})[0];
    if (text[0] != '\0') contact_ = parse_contact(text.data());
  }
  ~ToldMeetingPoint() override {
    try {
      if (ranks_.rank() == 0 && !told_) static_cast<void>(ranks_.exchange(CardText{}));
    } catch (const std::exception&) {
      // The ranks cannot exchange anything any more, and know it.
    }
  }

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] const char* caller() const override { return "from_mpi"; }
  [[nodiscard]] std::string secret() const override { return contact_.token; }
  std::vector<FileDescriptor> listen(Clock::time_point /*deadline*/) override {
    ListeningContact made = listen_with_contact(interface_);
    contact_ = std::move(made.contact);
    const std::string text = to_text(contact_);
    CardText told{};
    if (text.size() >= told.size()) throw TransportError("this host has too many addresses");
    put(told, text);
    told_ = true;
    static_cast<void>(ranks_.exchange(told));
    return std::move(made.listeners);
  }
  [[nodiscard]] std::string stranger_name(const FileDescriptor& socket) const override {
    return peer_address_of(socket).text();
  }
  Attempt try_connect(int /*rank*/, Clock::time_point deadline) override {
    if (contact_.token.empty()) throw TransportError("rank 0 does not listen");
    return connect_by(contact_, deadline);
  }

 private:
  Bootstrap& ranks_;
  std::string interface_;
  std::string name_ = "the addresses that it has told";
  Contact contact_;
  bool told_ = false;
};

}  // namespace

std::unique_ptr<MeetingPoint> meet_where_told(Bootstrap& ranks, const std::string& interface) {
  return std::make_unique<ToldMeetingPoint>(ranks, interface);
}

}  // namespace rondo::detail
