#pragma once
/// ObservedActor for CAF 0.17.

#include <memory>
#include <utility>

#include <caf/all.hpp>

#include "actors/caf/caf_0_17.hpp"
#include "actors/caf/mailbox_observer.hpp"

namespace weft {

/// An actor whose mailbox is observed, from its first message on.
template <class Handle, class State>
class ObservedActor : public caf::stateful_actor<State, typename Handle::base> {
 public:
  using Base = caf::stateful_actor<State, typename Handle::base>;

  ObservedActor(caf::actor_config& config, std::shared_ptr<MailboxObserver<MessageName>> observer)
      : Base(config), observer_(std::move(observer)) {}

  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* unit) override {
    observer_->came();
    Base::enqueue(std::move(message), unit);
  }
  caf::invoke_message_result consume(caf::mailbox_element& message) override {
    const auto& content = message.content();
    const bool has_name = !content.empty() && content.template match_element<MessageName>(0);
    observer_->begun(has_name ? content.template get_as<MessageName>(0) : kNoName, message.sender);
    const auto result = Base::consume(message);
    observer_->done();
    return result;
  }

 private:
  std::shared_ptr<MailboxObserver<MessageName>> observer_;
};

}  // namespace weft
