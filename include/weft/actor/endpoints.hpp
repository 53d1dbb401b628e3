#pragma once
/// The endpoints of an actor: its member functions that other actors and programs may call.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <weft/actor/reply.hpp>
#include <weft/message/aggregate.hpp>
#include <weft/message/containers.hpp>

namespace weft {

/// Lists an actor's endpoints. The actor's class gives the list the name `endpoints`:
///
///   struct Counter {
///     void add(int n);
///     int total() const;                     // const: called again if a process is lost
///     using endpoints = weft::Endpoints<&Counter::add, &Counter::total>;
///   };
template <auto... Functions>
struct Endpoints {
  static constexpr std::size_t kCount = sizeof...(Functions);
};

namespace detail {

/// Gives the types of a function's parameters, except a last Reply, and of its answer.
template <typename R, typename Given, typename... A>
struct EndpointTypes {
  using Result = R;
  using Arguments = Given;
  static constexpr bool kRepliesLater = false;
};
template <typename R, typename... Given, typename First, typename... A>
struct EndpointTypes<R, std::tuple<Given...>, First, A...>
    : EndpointTypes<R, std::tuple<Given..., std::remove_cvref_t<First>>, A...> {};
template <typename R, typename... Given, typename Later>
struct EndpointTypes<R, std::tuple<Given...>, Reply<Later>> {
  static_assert(std::is_void_v<R>, "an endpoint with a Reply returns void");
  using Result = Later;
  using Arguments = std::tuple<Given...>;
  static constexpr bool kRepliesLater = true;
};

template <typename F>
struct Signature;
template <typename C, typename R, typename... A>
struct Signature<R (C::*)(A...)> : EndpointTypes<R, std::tuple<>, A...> {
  using Class = C;
  static constexpr bool kIsConst = false;
};
template <typename C, typename R, typename... A>
struct Signature<R (C::*)(A...) const> : Signature<R (C::*)(A...)> {
  static constexpr bool kIsConst = true;
};
template <typename C, typename R, typename... A>
struct Signature<R (C::*)(A...) noexcept> : Signature<R (C::*)(A...)> {};
template <typename C, typename R, typename... A>
struct Signature<R (C::*)(A...) const noexcept> : Signature<R (C::*)(A...) const> {};

template <auto F>
using SignatureOf = Signature<decltype(F)>;

template <auto F, auto G>
constexpr bool is_same_function() {
  if constexpr (std::is_same_v<decltype(F), decltype(G)>) {
    return F == G;
  } else {
    return false;
  }
}

inline constexpr std::size_t kNoEndpoint = ~std::size_t{0};

/// The index of a function in a list of endpoints; kNoEndpoint if the list lacks it.
template <auto F, typename List>
inline constexpr std::size_t endpoint_index = kNoEndpoint;
template <auto F, auto... G>
inline constexpr std::size_t endpoint_index<F, Endpoints<G...>> = [] {
  std::size_t index = 0;
  std::size_t found = kNoEndpoint;
  ((found = is_same_function<F, G>() ? index : found, ++index), ...);
  return found;
}();

/// Returns the function's name without its class: "add".
template <auto F>
constexpr std::string_view function_name() {
  // The text is "... [with auto F = &Counter::add]" with g++, "... [F = &Counter::add]" with clang.
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.rfind(']'));
  if (const std::size_t end = text.find(';', text.find("F = ")); end != text.npos) {
    text = text.substr(0, end);
  }
  const std::size_t colons = text.rfind("::");
  return colons == text.npos ? text.substr(text.rfind('&') + 1) : text.substr(colons + 2);
}

/// Returns the endpoint's schema, by which caller and actor check that they agree:
/// "act({f32[4],u64})->{action:i32} const".
template <auto F>
std::string endpoint_schema() {
  using S = SignatureOf<F>;
  std::string text(function_name<F>());
  text += "(";
  [&]<typename... A>(std::tuple<A...>*) {
    ((text += MessageCodec<A>::schema() + ","), ...);
  }(static_cast<typename S::Arguments*>(nullptr));
  if (text.back() == ',') text.pop_back();
  text += ")";
  if constexpr (!std::is_void_v<typename S::Result>) {
    text += "->" + MessageCodec<std::remove_cvref_t<typename S::Result>>::schema();
  }
  return text + (S::kIsConst ? " const" : "");
}

}  // namespace detail

/// The type of the answer of endpoint F.
template <auto F>
using ResultOf = std::remove_cvref_t<typename detail::SignatureOf<F>::Result>;
template <auto F>
using ArgumentsOf = typename detail::SignatureOf<F>::Arguments;

/// True if class T lists its endpoints.
template <typename T>
concept ListsEndpoints = requires {
  typename T::endpoints;
};

/// True if F is an endpoint of actor class T.
template <auto F, typename T>
concept EndpointOf = detail::endpoint_index<F, typename T::endpoints>
!= detail::kNoEndpoint;

/// True if F may be called with arguments of these types.
template <auto F, typename... A>
concept Accepts = std::is_constructible_v<ArgumentsOf<F>, A...> &&
                  sizeof...(A) == std::tuple_size_v<ArgumentsOf<F>>;

}  // namespace weft
