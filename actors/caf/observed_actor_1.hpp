#pragma once
/// ObservedActor for CAF 1.x.

#include <memory>
#include <utility>

#include <caf/all.hpp>
#include <caf/detail/mailbox_factory.hpp>

#include "actors/caf/caf_1.hpp"
#include "actors/caf/mailbox_observer.hpp"

namespace weft {

/// Tells the observer which message the actor takes. The mailbox does it, because CAF 1.x tells
/// nobody else.
class ObservedMailbox : public caf::detail::default_mailbox {
 public:
  explicit ObservedMailbox(std::shared_ptr<MailboxObserver<MessageName>> observer)
      : observer_(std::move(observer)) {}

  caf::intrusive::inbox_result push_back(caf::mailbox_element_ptr message) override {
    observer_->came();
    return default_mailbox::push_back(std::move(message));
  }
  caf::mailbox_element_ptr pop_front() override {
    if (std::exchange(is_taken_, false)) observer_->done();
    caf::mailbox_element_ptr message = default_mailbox::pop_front();
    if (message) observer_->begun(name_of(message->content()), message->sender);
    is_taken_ = message != nullptr;
    return message;
  }

 private:
  std::shared_ptr<MailboxObserver<MessageName>> observer_;
  bool is_taken_ = false;  // a message was taken, and its end wasn't reported yet
};

template <class Handle, class State>
class ObservedActor : public caf::stateful_actor<State, typename Handle::base> {
 public:
  using Base = caf::stateful_actor<State, typename Handle::base>;

  ObservedActor(caf::actor_config& config, std::shared_ptr<MailboxObserver<MessageName>> observer)
      : Base(Mailboxes(std::move(observer)).of(config)) {}

 private:
  struct Mailboxes : caf::detail::mailbox_factory {
    explicit Mailboxes(std::shared_ptr<MailboxObserver<MessageName>> o) : observer(std::move(o)) {}
    caf::actor_config& of(caf::actor_config& config) {
      config.mbox_factory = this;
      return config;
    }
    caf::abstract_mailbox* make(caf::scheduled_actor*) override {
      return new ObservedMailbox(observer);
    }
    caf::abstract_mailbox* make(caf::blocking_actor*) override { return nullptr; }
    std::shared_ptr<MailboxObserver<MessageName>> observer;
  };
};

}  // namespace weft
