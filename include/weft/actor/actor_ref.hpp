#pragma once
/// ActorRef and ActorMesh: actors that can be called, wherever they are.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weft/actor/call.hpp>
#include <weft/actor/endpoints.hpp>
#include <weft/actor/future.hpp>

namespace weft {

/// Refers to one actor of class T. It may be copied, and refers to the actor's successor after a
/// restart. Thread-safe.
template <typename T>
class ActorRef {
 public:
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

/// Refers to several actors of class T, in an order. Thread-safe.
template <typename T>
class ActorMesh {
 public:
  explicit ActorMesh(std::vector<ActorRef<T>> actors) : actors_(std::move(actors)) {}

  int size() const { return static_cast<int>(actors_.size()); }
  /// Throws std::out_of_range.
  const ActorRef<T>& operator[](int index) const {
    return actors_.at(static_cast<std::size_t>(index));
  }
  /// Calls the endpoint on all actors with the same arguments.
  template <auto F, typename... A>
  requires EndpointOf<F, T> && Accepts<F, A...> Gather<ResultOf<F>> call(const A&... arguments)
  const {
    std::vector<Future<ResultOf<F>>> calls;
    for (const ActorRef<T>& actor : actors_) {
      calls.push_back(actor.template call<F>(arguments...));
    }
    return Gather<ResultOf<F>>(std::move(calls));
  }
  template <auto F, typename... A>
  requires EndpointOf<F, T> && Accepts<F, A...>
  void tell(const A&... arguments) const {
    for (const ActorRef<T>& actor : actors_) actor.template tell<F>(arguments...);
  }
  /// Calls the endpoint on actor i with argument i. Throws invalid_argument unless there is an
  /// argument for each actor.
  template <auto F, typename Argument>
  requires EndpointOf<F, T> && Accepts<F, Argument> Gather<ResultOf<F>> scatter(
      const std::vector<Argument>& arguments)
  const {
    if (arguments.size() != actors_.size()) {
      fail(Errc::invalid_argument, "scatter: {} arguments for {} actors: expected one for each",
           arguments.size(), actors_.size());
    }
    std::vector<Future<ResultOf<F>>> calls;
    for (std::size_t i = 0; i < actors_.size(); ++i) {
      calls.push_back(actors_[i].template call<F>(arguments[i]));
    }
    return Gather<ResultOf<F>>(std::move(calls));
  }
  /// Returns the actor that has the fewest unanswered calls of this process.
  const ActorRef<T>& any() const {
    std::vector<detail::ActorHandle> handles;
    for (const ActorRef<T>& actor : actors_) handles.push_back(actor.handle());
    return actors_.at(detail::least_busy(handles));
  }
  /// Returns the actors from index `begin` up to `end`, without that.
  ActorMesh slice(int begin, int end) const {
    if (begin < 0 || begin >= end || end > size()) {
      fail(Errc::invalid_argument, "slice({}, {}) of {} actors: expected 0 <= begin < end <= {}",
           begin, end, size(), size());
    }
    return ActorMesh({actors_.begin() + begin, actors_.begin() + end});
  }
  /// Returns a mesh whose calls have these options.
  ActorMesh with(const CallOptions& options) const {
    std::vector<ActorRef<T>> all;
    for (const ActorRef<T>& actor : actors_) all.push_back(actor.with(options));
    return ActorMesh(std::move(all));
  }

 private:
  std::vector<ActorRef<T>> actors_;
};

}  // namespace weft
