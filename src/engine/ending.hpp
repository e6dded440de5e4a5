// How a communicator ends: what a call has thrown becomes the error that its caller gets, and what
// the other ranks learn of it.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "carrier/presence.hpp"
#include "engine/context.hpp"

namespace rondo::detail {

class Ending {
 public:
  explicit Ending(Context& context) : context_(context), wiring_(context.wiring) {}

  // Throws PeerError if a rank has ended the communicator. `signature`: of the call that cannot go
  // on.
  void throw_if_ended(const Signature& signature);

  // In a handler of what a call has thrown: the communicator ends. `buffers`: those that the call
  // showed, which no rank touches any more when this throws. Throws an Error, or what was thrown.
  [[noreturn]] void end_with_thrown(const Signature& signature, const BufferLocations& buffers);

  // This rank destroys its communicator. Waits until the last call is confirmed
  // (engine/confirmation.hpp). If the communicator has ended, tells the other hosts, and the caller
  // by the log, unless they know.
  void leave() noexcept;

 private:
  // Raises the abort board with the text of what was thrown, unless that was done where the error
  // was found. Returns the text for the caller's error.
  std::exception_ptr raise_thrown(const Signature& signature) noexcept;
  [[noreturn]] void throw_failure(const Signature& signature, const Failure& failure);
  // How far the call has come.
  [[nodiscard]] std::string so_far(const Failure& failure) const;
  template <class E>
  [[noreturn]] void raise_and_throw(const std::string& text);
  [[nodiscard]] std::optional<Failure> who_is_gone() const;
  void confirm_last();
  void raise(const std::string& text) noexcept;

  Context& context_;
  Wiring& wiring_;
  bool told_ = false;  // a call has thrown why the communicator ended
};

}  // namespace rondo::detail
