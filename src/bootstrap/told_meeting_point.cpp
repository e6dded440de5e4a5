#include <array>
#include <exception>
#include <utility>

#include <rondo/errors.hpp>

#include "base/put.hpp"
#include "bootstrap/contact_listener.hpp"
#include "bootstrap/meeting_point.hpp"

namespace rondo::detail {
namespace {

using ContactText = std::array<char, 8192>;  // an empty one where rank 0 does not listen

// Tells the other ranks where rank 0 listens, or, at last, that it does not.
class ToldContact {
 public:
  explicit ToldContact(Bootstrap& ranks) : ranks_(ranks) {}
  ToldContact(const ToldContact&) = delete;
  ToldContact& operator=(const ToldContact&) = delete;
  ~ToldContact() {
    try {
      if (!told_) static_cast<void>(ranks_.exchange(ContactText{}));
    } catch (const std::exception&) {
      // The ranks cannot exchange anything any more, and know it.
    }
  }

  void tell(const Contact& contact) {
    const std::string text = to_text(contact);
    ContactText told{};
    if (text.size() >= told.size()) throw TransportError("this host has too many addresses");
    put(told, text);
    told_ = true;
    static_cast<void>(ranks_.exchange(told));
  }

 private:
  Bootstrap& ranks_;
  bool told_ = false;
};

}  // namespace

MeetingPoint meet_where_told(Bootstrap& ranks, const std::string& interface) {
  MeetingPoint place{.name = "the addresses that it has told", .caller = "from_mpi"};
  if (ranks.rank() == 0) {
    place.listen = [interface, told = std::make_shared<ToldContact>(ranks)](Clock::time_point) {
      ListeningContact made = listen_with_contact(interface);
      told->tell(made.contact);
      return Listening{.listeners = std::move(made.listeners), .secret = made.contact.token};
    };
    return place;
  }
  const ContactText text = ranks.exchange(ContactText{})[0];
  if (text[0] == '\0') {
    place.find = [](Clock::time_point, std::uint16_t) -> Target {
      throw TransportError("rank 0 does not listen");
    };
    return place;
  }
  place.find = [contact = parse_contact(text.data())](Clock::time_point, std::uint16_t) {
    Target target = target_of(contact);
    target.secret = contact.token;
    return target;
  };
  return place;
}

}  // namespace rondo::detail
