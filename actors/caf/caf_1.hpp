#pragma once
/// Gives CAF 1.x the names that version.hpp promises. caf_0_17.hpp explains their meaning.

#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include <caf/all.hpp>
#include <caf/io/middleman.hpp>
#include <caf/thread_hook.hpp>

#define WEFT_CAF_TYPE(block, type, name) CAF_ADD_TYPE_ID(block, (type), name)

namespace weft {

template <class... Message>
using On = caf::result<void>(Message...);
template <class Result, class... Message>
using Ask = caf::result<Result>(Message...);

/// Enumerators are sent as numbers.
template <class Inspector, class Enum>
requires std::is_enum_v<Enum>
bool inspect(Inspector& f, Enum& x) {
  using Number = std::underlying_type_t<Enum>;
  return f.apply([&x] { return static_cast<Number>(x); },
                 [&x](Number number) {
                   x = static_cast<Enum>(number);
                   return true;
                 });
}
template <class Inspector, class Message, class... Field>
bool inspect_fields(Inspector& f, Message& message, Field&... fields) {
  return f.object(message).fields(f.field("field", fields)...);
}

template <class... Block>
void register_blocks() {
  static std::once_flag once;
  std::call_once(once, [] {
    caf::core::init_global_meta_objects();
    caf::io::middleman::init_global_meta_objects();
    (caf::init_global_meta_objects<Block>(), ...);
  });
}
template <class T>
void add_message(caf::actor_system_config&, const char*) {}

inline std::string caf_option(const char* name) { return std::string("caf.") + name; }
inline std::string caf_symbol(const char* text) { return text; }

template <class T>
using CafList = caf::type_list<T>;

template <class Handle, class... Content>
void post(const Handle& to, Content&&... content) {
  caf::anon_mail(std::forward<Content>(content)...).send(to);
}
template <class Sender, class Handle, class... Content>
void post_as(const Sender& from, const Handle& to, Content&&... content) {
  if (!to) return;
  to->enqueue(caf::make_mailbox_element(caf::actor_cast<caf::strong_actor_ptr>(from),
                                        caf::make_message_id(), std::forward<Content>(content)...),
              nullptr);
}
template <class Self, class Handle, class... Content>
void send_by(Self* self, const Handle& to, Content&&... content) {
  self->mail(std::forward<Content>(content)...).send(to);
}
template <class Self, class Delay, class... Content>
void send_later(Self* self, Delay delay, Content&&... content) {
  self->mail(std::forward<Content>(content)...)
      .delay(delay)
      .send(typename Self::actor_hdl(self), caf::weak_ref);
}
template <class Self, class Handle, class Timeout, class... Content>
auto request_by(Self& self, const Handle& to, Timeout timeout, Content&&... content) {
  return self->mail(std::forward<Content>(content)...).request(to, timeout);
}

template <class Self>
auto& state_of(Self* self) {
  return self->state();
}

template <class Self, class Handle, class Gone>
void watch(Self* self, const Handle& whom, Gone gone) {
  self->monitor(whom, [gone, address = caf::actor_cast<caf::actor_addr>(whom)](const caf::error&) {
    gone(address);
  });
}
// CAF 1.1 wants handlers in the behavior in place of these two functions, but a typed behavior has
// no handlers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
template <class Take>
void on_error(caf::scheduled_actor* self, Take take) {
  self->set_error_handler(std::move(take));
}
template <class Take>
void on_unexpected(caf::scheduled_actor* self, Take take) {
  self->set_default_handler([take](caf::scheduled_actor*, caf::message& message) {
    take(caf::to_string(message));
    return caf::skippable_result(caf::make_error(caf::sec::unexpected_message));
  });
}
#pragma GCC diagnostic pop

class ThreadHook : public caf::thread_hook {
 public:
  void init(caf::actor_system&) override {}
  void thread_started(caf::thread_owner) override { thread_began(); }
  virtual void thread_began() = 0;
};

using MessageName = caf::type_id_t;
inline constexpr MessageName kNoName = caf::invalid_type_id;
/// Returns the text of a name. Names are types such as weft::join_parts_a, whose text is
/// "joinparts".
inline std::string text_of(MessageName name) {
  std::string text(caf::query_type_name(name));
  text = text.substr(text.rfind(':') + 1);
  text.resize(text.size() - 2);
  std::erase(text, '_');
  return text;
}
inline MessageName name_of(const caf::message& message) {
  if (message.empty()) return kNoName;
  const caf::type_id_t first = message.types()[0];
  return caf::query_type_name(first).ends_with("_a") ? first : kNoName;
}

}  // namespace weft
