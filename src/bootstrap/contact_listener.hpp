// Listening with a contact (contact.hpp), and connecting to the rank that has published it.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/contact.hpp"
#include "bootstrap/meeting_point.hpp"

namespace rondo::detail {

struct ListeningContact {
  Contact contact;
  std::vector<FileDescriptor> listeners;
};
// Listens at all addresses of this machine, or at those of one interface if it is named. Throws
// UsageError, TransportError.
ListeningContact listen_with_contact(const std::string& interface);
// Connects to the rank that has published the contact, on the same machine first by its own
// addresses. Throws TransportError.
Attempt connect_by(const Contact& contact, Clock::time_point deadline);

}  // namespace rondo::detail
