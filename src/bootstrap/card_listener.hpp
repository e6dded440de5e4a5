// Listening with a card (card.hpp), and finding the one who has left it.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/card.hpp"
#include "bootstrap/meeting_point.hpp"

namespace rondo::detail {

struct CardOfListener {
  Card card;
  std::vector<FileDescriptor> listeners;
};
// Listens at all addresses of this machine, or at those of one interface if it is named. Throws UsageError, TransportError.
CardOfListener listen_with_card(const std::string& interface);
// Connects to whoever has left the card, on the same machine first by its own addresses. Throws TransportError.
Attempt connect_by(const Card& card, Clock::time_point deadline);

}  // namespace rondo::detail
