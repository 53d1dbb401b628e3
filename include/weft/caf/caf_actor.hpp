#pragma once
/// to_caf(): makes an actor of weft usable as an actor of CAF.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <caf/all.hpp>

#include <weft/actor/actor_ref.hpp>
#include <weft/caf/caf_error.hpp>

namespace weft {

/// The first element of a request: `weft::call<&Policy::act>`. In CAF 1.x this type needs an id in
/// the application's block, like the types of arguments and results:
/// `CAF_ADD_TYPE_ID(robot, (weft::CallOf<&Policy::act>))`.
template <auto F>
struct CallOf {};
template <auto F>
inline constexpr CallOf<F> call{};

namespace detail {

/// A function that an actor runs on its own thread.
struct CafTask {
  std::function<void()> run;
};

#if CAF_MAJOR_VERSION < 1
template <typename R, typename... A>
using CafSignature = typename caf::replies_to<A...>::template with<R>;

inline void run_in(const caf::actor& actor, std::function<void()> work) {
  caf::anon_send(actor, CafTask{std::move(work)});
}
inline caf::message_handler run_tasks() {
  return [](const CafTask& task) { task.run(); };
}
#else
template <typename R, typename... A>
using CafSignature = caf::result<R>(A...);

inline void run_in(const caf::actor& actor, std::function<void()> work) {
  caf::anon_mail(caf::make_action(std::move(work))).send(actor);
}
inline caf::message_handler run_tasks() { return {}; }
#endif

template <auto F, typename Arguments = ArgumentsOf<F>>
struct CafEndpoint;
template <auto F, typename... A>
struct CafEndpoint<F, std::tuple<A...>> {
  using Result = ResultOf<F>;
  using Signature = CafSignature<Result, CallOf<F>, A...>;

  /// The requests that aren't answered yet, by number. Only the CAF actor's thread uses them.
  using Promises = std::map<std::uint64_t, caf::response_promise>;

  template <typename T>
  static auto handler(caf::event_based_actor* self, const ActorRef<T>& actor,
                      const std::shared_ptr<Promises>& promises) {
    return [self, actor, promises, next = std::uint64_t{0}](
               CallOf<F>, const A&... arguments) mutable -> caf::result<Result> {
      try {
        Future<Result> answer = actor.template call<F>(arguments...);
        const std::uint64_t number = next++ << 16 | endpoint_index<F, typename T::endpoints>;
        promises->emplace(number, self->make_response_promise());
        // `me` keeps the actor alive, and thereby `promises`, until the actor has run this task.
        answer.then([me = caf::actor(self), all = promises.get(), number](Outcome<Result> outcome) {
          run_in(me, [all, number, outcome = std::move(outcome)] {
            caf::response_promise promise = std::move(all->extract(number).mapped());
            deliver(promise, outcome);
          });
        });
      } catch (const Error& error) {
        return to_caf(error);
      }
      return caf::delegated<Result>{};
    };
  }

 private:
  static void deliver(caf::response_promise& promise, const Outcome<Result>& outcome) {
    if (!outcome.ok()) {
      promise.deliver(to_caf(outcome.error()));
    } else if constexpr (std::is_void_v<Result>) {
      promise.deliver(caf::unit);
    } else {
      promise.deliver(outcome.value());
    }
  }
};

template <typename List>
struct CafInterface;
template <auto... F>
struct CafInterface<Endpoints<F...>> {
  using Handle = caf::typed_actor<typename CafEndpoint<F>::Signature...>;

  template <typename T>
  static caf::behavior behavior(caf::event_based_actor* self, const ActorRef<T>& actor) {
    auto promises = std::make_shared<std::map<std::uint64_t, caf::response_promise>>();
    return run_tasks().or_else(CafEndpoint<F>::handler(self, actor, promises)...);
  }
};

}  // namespace detail

/// The type of a CAF actor that takes (weft::call<&T::f>, arguments...) for each endpoint f of T.
template <typename T>
using CafActor = typename detail::CafInterface<typename T::endpoints>::Handle;

/// Makes a CAF actor that passes requests on to `actor`:
///
///   self->request(brain, 5ms, weft::call<&Policy::act>, observation).then(...);         // 0.17
///   self->mail(weft::call<&Policy::act>, observation).request(brain, 5ms).then(...);     // 1.x
///
/// The answer is the endpoint's result, or the caf::error that to_caf() makes of the call's error.
/// `options` apply to each call. The CAF actor doesn't block, so a call that finds no room ends
/// with the error overloaded. Like any actor of CAF, it keeps CAF's actor system alive until no
/// handle of it exists and all its calls have ended.
template <typename T>
CafActor<T> to_caf(caf::actor_system& system, const ActorRef<T>& actor, CallOptions options = {}) {
  options.wait_if_full = false;
  return caf::actor_cast<CafActor<T>>(
      system.spawn([actor = actor.with(std::move(options))](caf::event_based_actor* self) {
        return detail::CafInterface<typename T::endpoints>::behavior(self, actor);
      }));
}

}  // namespace weft

namespace caf {
template <auto F>
struct allowed_unsafe_message_type<weft::CallOf<F>> : std::true_type {};
}  // namespace caf
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::detail::CafTask)
