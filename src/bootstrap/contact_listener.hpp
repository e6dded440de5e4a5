// Listening with a contact (contact.hpp), and where the rank is that has published it.
#pragma once

#include <string>
#include <vector>

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
// The addresses of the rank that has published the contact: on the same machine its own ones first.
Target target_of(const Contact& contact);

}  // namespace rondo::detail
