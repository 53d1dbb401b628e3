#pragma once
/// WatchedActor: an actor whose messages can be observed from outside, even while it is stuck in
/// one of them. Its row of the board counts the messages that arrived, were begun and were
/// finished, and names the last one begun. Its ring records when each was begun.

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include <caf/all.hpp>

#include "transport/blackbox/recorder.hpp"

namespace weft {

/// The sender of a message, and the message's number among those of that sender, from 1. Number 0
/// means that the message isn't counted.
struct MessageOrigin {
  int peer = -1;
  std::uint64_t sequence = 0;
};
using FindOrigin = std::function<MessageOrigin(const caf::strong_actor_ptr& sender)>;

/// `Handle` is a typed actor; `State` is as in caf::stateful_actor. The row and the ring must
/// outlive the actor system.
template <class Handle, class State>
class WatchedActor : public caf::stateful_actor<State, typename Handle::base> {
 public:
  using Base = caf::stateful_actor<State, typename Handle::base>;
  using Behavior = typename Handle::behavior_type;
  using MakeBehavior = std::function<Behavior(typename Handle::template stateful_pointer<State>)>;

  WatchedActor(caf::actor_config& config, const Recorder& recorder, MakeBehavior make)
      : Base(config), recorder_(recorder), make_(std::move(make)) {}

  /// Records messages as events from now on. `find` returns the origin of a message.
  void find_origins_by(FindOrigin find) { find_origin_ = std::move(find); }

  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* unit) override {
    recorder_.board.message_came();
    Base::enqueue(std::move(message), unit);
  }

  caf::invoke_message_result consume(caf::mailbox_element& message) override {
    note_begin(message);
    const auto result = Base::consume(message);
    recorder_.board.message_done();
    return result;
  }

 protected:
  Behavior make_behavior() override { return make_(this); }

 private:
  void note_begin(const caf::mailbox_element& message) {
    const auto& content = message.content();
    const bool has_name = !content.empty() && content.template match_element<caf::atom_value>(0);
    const auto name = has_name ? content.template get_as<caf::atom_value>(0) : caf::atom("system");
    if (std::exchange(last_, name) == name) {
      recorder_.board.message_begun();
    } else {
      recorder_.board.message_begun(caf::to_string(name));
    }
    if (!has_name || find_origin_ == nullptr) return;
    const MessageOrigin origin = find_origin_(message.sender);
    recorder_.events.put(EventKind::message_in,
                         {.number = origin.sequence, .peer = origin.peer, .text = text_of(name)});
  }
  /// Returns the interned text of a message's name. Each name is interned once in an actor's life.
  std::uint32_t text_of(caf::atom_value name) {
    const auto [known, is_new] = texts_.try_emplace(name, 0);
    if (is_new) known->second = recorder_.events.intern(caf::to_string(name));
    return known->second;
  }

  Recorder recorder_;
  MakeBehavior make_;
  FindOrigin find_origin_;
  caf::atom_value last_{};
  std::map<caf::atom_value, std::uint32_t> texts_;
};

}  // namespace weft
