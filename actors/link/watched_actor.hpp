#pragma once
/// WatchedActor: an actor whose messages can be observed from outside, even while it hangs in one
/// of them. Its row of the board counts the messages that have arrived, begun and ended, and names
/// the last one that began. Its ring records when each message began.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "actors/caf/version.hpp"
#include "transport/blackbox/recorder.hpp"

namespace weft {

/// The sender of a message, and the message's number among the sender's messages, from 1. Number 0:
/// the message isn't counted.
struct MessageOrigin {
  int peer = -1;
  std::uint64_t sequence = 0;
};
using FindOrigin = std::function<MessageOrigin(const caf::strong_actor_ptr& sender)>;

/// Records the messages of one actor in its row and its ring.
class RecordedMailbox : public MailboxObserver<MessageName> {
 public:
  explicit RecordedMailbox(const Recorder& recorder) : recorder_(recorder) {}

  void find_origins_by(FindOrigin find) { find_origin_ = std::move(find); }

  void came() override { recorder_.board.message_came(); }
  void begun(MessageName name, const caf::strong_actor_ptr& sender) override {
    if (std::exchange(last_, name) == name && has_begun_) {
      recorder_.board.message_begun();
    } else {
      recorder_.board.message_begun(name == kNoName ? "system" : text_of(name));
    }
    has_begun_ = true;
    if (name == kNoName || find_origin_ == nullptr) return;
    const MessageOrigin origin = find_origin_(sender);
    recorder_.events.put(EventKind::message_in,
                         {.number = origin.sequence, .peer = origin.peer, .text = interned(name)});
  }
  void done() override { recorder_.board.message_done(); }

 private:
  /// Returns the interned text of a message's name. An actor interns each name once.
  std::uint32_t interned(MessageName name) {
    const auto [known, is_new] = texts_.try_emplace(name, 0);
    if (is_new) known->second = recorder_.events.intern(text_of(name));
    return known->second;
  }

  Recorder recorder_;
  FindOrigin find_origin_;
  bool has_begun_ = false;
  MessageName last_ = kNoName;
  std::map<MessageName, std::uint32_t> texts_;
};

/// `Handle` is a typed actor, and `State` is as for caf::stateful_actor. The row and the ring must
/// outlive the actor system.
template <class Handle, class State>
class WatchedActor : public ObservedActor<Handle, State> {
 public:
  using Base = ObservedActor<Handle, State>;
  using Behavior = typename Base::behavior_type;
  using MakeBehavior = std::function<Behavior(typename Handle::template stateful_pointer<State>)>;

  WatchedActor(caf::actor_config& config, const Recorder& recorder, MakeBehavior make)
      : WatchedActor(config, std::make_shared<RecordedMailbox>(recorder), std::move(make)) {}

  /// From now on, records messages as events too. `find` returns the origin of a message.
  void find_origins_by(FindOrigin find) { mailbox_->find_origins_by(std::move(find)); }

 protected:
  Behavior make_behavior() override { return make_(this); }

 private:
  WatchedActor(caf::actor_config& config, std::shared_ptr<RecordedMailbox> mailbox,
               MakeBehavior make)
      : Base(config, mailbox), mailbox_(std::move(mailbox)), make_(std::move(make)) {}

  std::shared_ptr<RecordedMailbox> mailbox_;
  MakeBehavior make_;
};

}  // namespace weft
