#pragma once
/// MailboxObserver: is told of the messages that an actor receives and handles.

#include <caf/fwd.hpp>

namespace weft {

template <class MessageName>
class MailboxObserver {
 public:
  virtual ~MailboxObserver() = default;
  /// Called by any thread when a message is put into the mailbox.
  virtual void came() = 0;
  /// Called when the actor takes a message. Only the actor's thread calls this function and done().
  virtual void begun(MessageName name, const caf::strong_actor_ptr& sender) = 0;
  /// Called when the actor has finished the message that it took last.
  virtual void done() = 0;
};

}  // namespace weft
