#pragma once
/// ActorType: registers a class as an actor, so that other processes of a system can make the
/// actor.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <weft/actor/actor_context.hpp>
#include <weft/actor/endpoints.hpp>

namespace weft {
namespace detail {

/// An endpoint without its C++ types.
struct EndpointEntry {
  std::string_view name;
  std::string schema;
  bool is_const = false;
  bool replies_later = false;  ///< the function's last parameter is a Reply
  /// Reads the arguments and calls the function on the object. Writes what the function returns to
  /// `result`, or passes `reply` to a function that answers later.
  void (*run)(void* object, MessageReader& arguments, MessageWriter& result,
              std::shared_ptr<PendingReply> reply) = nullptr;
};

/// An actor class without its C++ type. Other processes find it by its name while it exists.
class ActorClass {
 public:
  struct Parts {
    std::vector<EndpointEntry> endpoints{};
    ActorMaker make = nullptr;
    void (*work)(void* object) = nullptr;  ///< null if the class has no work()
  };

  ActorClass(std::string name, Parts parts, std::source_location where);
  ~ActorClass();
  ActorClass(const ActorClass&) = delete;
  ActorClass& operator=(const ActorClass&) = delete;

  const std::string& name() const { return name_; }
  const Parts& parts() const { return parts_; }
  /// Returns the place of the definition, such as "sieve.cpp:12".
  std::string site() const;

 private:
  std::string name_;
  Parts parts_;
  std::source_location where_;
};

template <auto F>
void run_endpoint(void* object, MessageReader& in, MessageWriter& out,
                  std::shared_ptr<PendingReply> reply) {
  using S = SignatureOf<F>;
  auto arguments = [&]<typename... A>(std::tuple<A...>*) {
    // A braced list evaluates its elements from left to right, so arguments are read in order.
    return std::tuple<A...>{MessageCodec<A>::get(in)...};
  }(static_cast<typename S::Arguments*>(nullptr));
  in.finish();
  auto& self = *static_cast<typename S::Class*>(object);
  auto call = [&](auto&... each) -> decltype(auto) { return (self.*F)(each...); };
  if constexpr (S::kRepliesLater) {
    std::apply(
        [&](auto&... each) { (self.*F)(each..., Reply<typename S::Result>(std::move(reply))); },
        arguments);
  } else if constexpr (std::is_void_v<typename S::Result>) {
    std::apply(call, arguments);
  } else {
    MessageCodec<ResultOf<F>>::put(out, std::apply(call, arguments));
  }
}

template <auto... F>
std::vector<EndpointEntry> entries_of(Endpoints<F...>) {
  return {EndpointEntry{.name = function_name<F>(),
                        .schema = endpoint_schema<F>(),
                        .is_const = SignatureOf<F>::kIsConst,
                        .replies_later = SignatureOf<F>::kRepliesLater,
                        .run = run_endpoint<F>}...};
}

template <typename T>
std::shared_ptr<void> make_actor(ActorContext& context) {
  if constexpr (std::is_constructible_v<T, ActorContext&>) {
    return std::make_shared<T>(context);
  } else {
    static_assert(std::is_default_constructible_v<T>,
                  "an actor's constructor takes nothing, or an ActorContext&");
    return std::make_shared<T>();
  }
}

template <typename T>
concept HasWork = requires(T& actor) {
  actor.work();
};

template <typename T>
constexpr void (*work_of())(void*) {
  if constexpr (HasWork<T>) {
    return [](void* object) { static_cast<T*>(object)->work(); };
  } else {
    return nullptr;
  }
}

}  // namespace detail

/// Registers class T under a name, by which other processes of a system find it. Make it a variable
/// of namespace scope: `static weft::ActorType<Sieve> sieve{"acme.sieve"};`
///
/// T is a plain class with a list `endpoints`, and a constructor that takes nothing or an
/// ActorContext&. If T has a function `work()`, the actor's thread calls it again and again while
/// no message waits. Only one thread at a time runs functions of an actor.
template <typename T>
class ActorType {
 public:
  /// Registers the class. If another ActorType has the name, or it isn't 1 to 63 characters of a-z
  /// A-Z 0-9 _ . - then spawn() throws invalid_argument.
  explicit ActorType(std::string name, std::source_location where = std::source_location::current())
      : entry_(std::move(name),
               {.endpoints = detail::entries_of(typename T::endpoints{}),
                .make = detail::make_actor<T>,
                .work = detail::work_of<T>()},
               where) {}

  const std::string& name() const { return entry_.name(); }
  const detail::ActorClass& entry() const { return entry_; }

 private:
  detail::ActorClass entry_;
};

}  // namespace weft
