#pragma once
/// ActorRef: an actor that can be called, wherever it is.

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include <weft/actor/call.hpp>
#include <weft/actor/endpoints.hpp>
#include <weft/actor/future.hpp>

namespace weft {

class ActorContext;

namespace detail {
template <typename T>
std::shared_ptr<void> make_actor(ActorContext& context);
/// Identifies an actor class within a program: its make_actor().
using ActorMaker = std::shared_ptr<void> (*)(ActorContext& context);

void put_actor(MessageWriter& out, const ActorHandle& actor);
/// Throws corrupt if the bytes name no actor of the class, and invalid_argument if they name an
/// actor of another system.
ActorHandle get_actor(MessageReader& in, ActorMaker maker);
}  // namespace detail

/// Refers to one actor of class T. It may be copied and sent in messages, and refers to the actor's
/// successor after a restart. Thread-safe.
template <typename T>
class ActorRef {
 public:
  /// Refers to no actor; calls throw invalid_argument.
  ActorRef() = default;
  explicit ActorRef(detail::ActorHandle actor, CallOptions options = {})
      : actor_(std::move(actor)), options_(std::move(options)) {}

  /// Calls an endpoint: `ref.call<&Counter::total>()`. Returns at once, unless 64 messages of this
  /// process wait already (CallOptions::wait_if_full).
  template <auto F, typename... A>
  requires EndpointOf<F, T> && Accepts<F, A...> Future<ResultOf<F>> call(A&&... arguments)
  const {
    return Future<ResultOf<F>>(
        detail::begin_call(actor_, id<F>(), written<F>(std::forward<A>(arguments)...), options_));
  }
  /// Sends a message that nobody answers. An exception of the endpoint fails the actor. Throws
  /// peer_lost, actor_failed, timeout or overloaded if the message can't be sent.
  template <auto F, typename... A>
  requires EndpointOf<F, T> && Accepts<F, A...>
  void tell(A&&... arguments) const {
    detail::begin_tell(actor_, id<F>(), written<F>(std::forward<A>(arguments)...), options_);
  }
  /// Returns a reference whose calls have these options.
  ActorRef with(CallOptions options) const { return ActorRef(actor_, std::move(options)); }
  /// Returns a name such as "sieves[3]".
  std::string name() const { return detail::name_of(actor_); }

  /// Whether it refers to an actor.
  explicit operator bool() const { return actor_.process != nullptr; }
  const detail::ActorHandle& handle() const { return actor_; }

 private:
  template <auto F>
  static constexpr detail::EndpointId id() {
    return {.index = static_cast<std::uint32_t>(detail::endpoint_index<F, typename T::endpoints>),
            .is_const = detail::SignatureOf<F>::kIsConst};
  }
  template <auto F, typename... A>
  static MessageWriter written(A&&... arguments) {
    const ArgumentsOf<F> all(std::forward<A>(arguments)...);
    MessageWriter out;
    std::apply(
        [&]<typename... Each>(const Each&... each) { (MessageCodec<Each>::put(out, each), ...); },
        all);
    return out;
  }

  detail::ActorHandle actor_;
  CallOptions options_;
};

/// A reference without its options. The actors of a system can send each other references.
template <typename T>
struct MessageCodec<ActorRef<T>> {
  static std::string schema() { return "actor"; }
  static void put(MessageWriter& out, const ActorRef<T>& actor) {
    detail::put_actor(out, actor.handle());
  }
  static ActorRef<T> get(MessageReader& in) {
    return ActorRef<T>(detail::get_actor(in, &detail::make_actor<T>));
  }
};

}  // namespace weft
