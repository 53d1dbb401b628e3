#pragma once
/// MailboxObserver: is told of the messages of one actor.

#include <caf/fwd.hpp>

namespace weft {

template <class MessageName>
class MailboxObserver {
 public:
  virtual ~MailboxObserver() = default;
  /// A message is put into the mailbox. Called by any thread.
  virtual void came() = 0;
  /// The actor takes a message. The other functions are called by the actor's thread only.
  virtual void begun(MessageName name, const caf::strong_actor_ptr& sender) = 0;
  /// The actor has finished the message that it took last.
  virtual void done() = 0;
};

}  // namespace weft
