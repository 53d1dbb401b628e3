#pragma once
/// ActorRef: a reference to an actor in any process of the system.

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
/// The make_actor() of an actor class. Its address identifies the class within a program.
using ActorMaker = std::shared_ptr<void> (*)(ActorContext& context);

void put_actor(MessageWriter& out, const ActorHandle& actor);
/// Reads a reference to an actor from a message. Throws corrupt if the bytes don't name an actor of
/// the class of `maker`, and invalid_argument if they name an actor of another system.
ActorHandle get_actor(MessageReader& in, ActorMaker maker);
}  // namespace detail

/// Refers to one actor of class T. A reference may be copied and sent in messages. After a restart
/// of the actor it refers to the new one. Thread-safe.
template <typename T>
class ActorRef {
 public:
  /// Makes a reference to no actor; calls through it throw invalid_argument.
  ActorRef() = default;
  explicit ActorRef(detail::ActorHandle actor, CallOptions options = {})
      : actor_(std::move(actor)), options_(std::move(options)) {}

  /// Calls an endpoint: `ref.call<&Counter::total>()`. Returns at once, unless
  /// CallOptions::wait_if_full is set and 64 messages of this process are waiting already.
  template <auto F, typename... A>
  requires ListsEndpoints<T> && Accepts<F, A...> Future<ResultOf<F>> call(A&&... arguments)
  const {
    return Future<ResultOf<F>>(
        detail::begin_call(actor_, id<F>(), written<F>(std::forward<A>(arguments)...), options_));
  }
  /// Sends a message that isn't answered. An exception of the endpoint makes the actor fail. Throws
  /// peer_lost, actor_failed, timeout or overloaded if the message can't be sent.
  template <auto F, typename... A>
  requires ListsEndpoints<T> && Accepts<F, A...>
  void tell(A&&... arguments) const {
    detail::begin_tell(actor_, id<F>(), written<F>(std::forward<A>(arguments)...), options_);
  }
  /// Returns a reference whose calls have these options.
  ActorRef with(CallOptions options) const { return ActorRef(actor_, std::move(options)); }
  /// Returns a name such as "sieves[3]".
  std::string name() const { return detail::name_of(actor_); }

  /// Returns whether this refers to an actor.
  explicit operator bool() const { return actor_.process != nullptr; }
  const detail::ActorHandle& handle() const { return actor_; }

 private:
  template <auto F>
  static constexpr detail::EndpointId id() {
    static_assert(EndpointOf<F, T>,
                  "this function isn't an endpoint: add it to the actor's list, `using endpoints = "
                  "weft::Endpoints<...>`");
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

/// Sends a reference, without its options, to actors of the same system.
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
