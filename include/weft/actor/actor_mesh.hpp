#pragma once
/// ActorMesh: an ordered group of actors of one class, in any processes of the system.

#include <cstddef>
#include <utility>
#include <vector>

#include <weft/actor/actor_ref.hpp>
#include <weft/tensor/error.hpp>

namespace weft {

/// Refers to several actors of class T, in a fixed order. Thread-safe.
template <typename T>
class ActorMesh {
 public:
  explicit ActorMesh(std::vector<ActorRef<T>> actors) : actors_(std::move(actors)) {}

  int size() const { return static_cast<int>(actors_.size()); }
  /// Returns actor `index`. Throws std::out_of_range.
  const ActorRef<T>& operator[](int index) const {
    return actors_.at(static_cast<std::size_t>(index));
  }
  /// Calls the endpoint on all actors with the same arguments.
  template <auto F, typename... A>
  requires ListsEndpoints<T> && Accepts<F, A...> Gather<ResultOf<F>> call(const A&... arguments)
  const {
    std::vector<Future<ResultOf<F>>> calls;
    for (const ActorRef<T>& actor : actors_) {
      calls.push_back(actor.template call<F>(arguments...));
    }
    return Gather<ResultOf<F>>(std::move(calls));
  }
  template <auto F, typename... A>
  requires ListsEndpoints<T> && Accepts<F, A...>
  void tell(const A&... arguments) const {
    for (const ActorRef<T>& actor : actors_) actor.template tell<F>(arguments...);
  }
  /// Calls the endpoint on actor i with arguments[i]. Throws invalid_argument unless there are as
  /// many arguments as actors.
  template <auto F, typename Argument>
  requires ListsEndpoints<T> && Accepts<F, Argument> Gather<ResultOf<F>> scatter(
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
  /// Returns the actor with the fewest unanswered calls from this process.
  const ActorRef<T>& any() const {
    std::vector<detail::ActorHandle> handles;
    for (const ActorRef<T>& actor : actors_) handles.push_back(actor.handle());
    return actors_.at(detail::least_busy(handles));
  }
  /// Returns the actors `begin` to `end` - 1.
  ActorMesh slice(int begin, int end) const {
    if (begin < 0 || begin >= end || end > size()) {
      fail(Errc::invalid_argument, "slice({}, {}) of {} actors: expected 0 <= begin < end <= {}",
           begin, end, size(), size());
    }
    return ActorMesh({actors_.begin() + begin, actors_.begin() + end});
  }
  /// Returns the same actors, called with these options.
  ActorMesh with(const CallOptions& options) const {
    std::vector<ActorRef<T>> all;
    for (const ActorRef<T>& actor : actors_) all.push_back(actor.with(options));
    return ActorMesh(std::move(all));
  }

 private:
  std::vector<ActorRef<T>> actors_;
};

}  // namespace weft
