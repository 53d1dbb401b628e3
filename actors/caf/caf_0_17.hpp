#pragma once
/// Gives CAF 0.17 the names that version.hpp promises.

#include <string>
#include <utility>

#include <caf/all.hpp>
#include <caf/thread_hook.hpp>

/// Gives a message type its id within a block of types. Types of CAF 0.17 need no id.
#define WEFT_CAF_TYPE(block, type, name)

namespace weft {

/// On<name, content...> is a message of a typed actor. Ask<result, name, content...> is one with an
/// answer.
template <class... Message>
using On = caf::reacts_to<Message...>;
template <class Result, class... Message>
using Ask = typename caf::replies_to<Message...>::template with<Result>;

/// Tells CAF the fields of a message.
template <class Inspector, class Message, class... Field>
auto inspect_fields(Inspector& f, Message&, Field&... fields) {
  return f(fields...);
}

/// Registers the types of these blocks. Must be called before the first actor system begins.
template <class... Block>
void register_blocks() {}
/// Registers a message type. Messages between processes contain its name.
template <class T>
void add_message(caf::actor_system_config& config, const char* name) {
  config.add_message_type<T>(name);
}

inline std::string caf_option(const char* name) { return name; }
template <std::size_t n>
caf::atom_value caf_symbol(const char (&text)[n]) {
  return caf::atom(text);
}

template <class T>
using CafList = caf::detail::type_list<T>;

/// Sends a message that has no sender.
template <class Handle, class... Content>
void post(const Handle& to, Content&&... content) {
  caf::anon_send(to, std::forward<Content>(content)...);
}
template <class Sender, class Handle, class... Content>
void post_as(const Sender& from, const Handle& to, Content&&... content) {
  caf::send_as(from, to, std::forward<Content>(content)...);
}
template <class Self, class Handle, class... Content>
void send_by(Self* self, const Handle& to, Content&&... content) {
  self->send(to, std::forward<Content>(content)...);
}
/// Sends a message to `self` after the delay.
template <class Self, class Delay, class... Content>
void send_later(Self* self, Delay delay, Content&&... content) {
  self->delayed_send(self, delay, std::forward<Content>(content)...);
}
template <class Self, class Handle, class Timeout, class... Content>
auto request_by(Self& self, const Handle& to, Timeout timeout, Content&&... content) {
  return self->request(to, timeout, std::forward<Content>(content)...);
}

template <class Self>
auto& state_of(Self* self) {
  return self->state;
}

/// Calls `gone` with the address of `whom` when that actor has ended. An actor has one such
/// function for all actors that it watches.
template <class Self, class Handle, class Gone>
void watch(Self* self, const Handle& whom, Gone gone) {
  self->set_down_handler([gone](caf::scheduled_actor*, caf::down_msg& down) { gone(down.source); });
  self->monitor(whom);
}
/// Calls `take` with the actor and the error when the actor gets an error as a message.
template <class Take>
void on_error(caf::scheduled_actor* self, Take take) {
  self->set_error_handler(std::move(take));
}
/// Calls `take` with the text of each message that the actor doesn't expect.
template <class Take>
void on_unexpected(caf::scheduled_actor* self, Take take) {
  self->set_default_handler([take](caf::scheduled_actor*, caf::message_view& message) {
    take(caf::to_string(message.move_content_to_message()));
    return caf::result<caf::message>(caf::sec::unexpected_message);
  });
}

/// Each thread that the actor system starts calls thread_began().
class ThreadHook : public caf::thread_hook {
 public:
  void init(caf::actor_system&) override {}
  void thread_started() override { thread_began(); }
  virtual void thread_began() = 0;
};

/// The name of a message is its first element, if that is a name.
using MessageName = caf::atom_value;
inline constexpr MessageName kNoName{};
inline std::string text_of(MessageName name) { return caf::to_string(name); }

}  // namespace weft
