#pragma once
/// MessageCodec: how values become the bytes of messages: numbers, bool, enums, text and tensors.

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include <weft/message/bytes.hpp>
#include <weft/tensor/dlpack.hpp>

namespace weft {

/// Defines how values of T become part of a message. `schema()` returns the type's schema, `put()`
/// appends a value to a message, and `get()` reads a value from a message. get() throws corrupt if
/// the bytes can't be a T. A program may specialize this template for its own types.
template <typename T>
struct MessageCodec;

/// A type that has a MessageCodec.
template <typename T>
concept Message = requires(MessageWriter& out, MessageReader& in, const T& value) {
  { MessageCodec<T>::schema() } -> std::convertible_to<std::string>;
  MessageCodec<T>::put(out, value);
  { MessageCodec<T>::get(in) } -> std::convertible_to<T>;
};

template <typename T>
requires std::is_arithmetic_v<T>
struct MessageCodec<T> {
  static std::string schema() {
    if (std::is_same_v<T, bool>) return "bool";
    const char* kind = std::is_floating_point_v<T> ? "f" : std::is_signed_v<T> ? "i" : "u";
    return kind + std::to_string(8 * sizeof(T));
  }
  static void put(MessageWriter& out, T value) { out.put(&value, sizeof(value)); }
  static T get(MessageReader& in) {
    if constexpr (std::is_same_v<T, bool>) {
      return in.boolean();
    } else {
      T value;
      in.get(&value, sizeof(value));
      return value;
    }
  }
};

template <typename T>
requires std::is_enum_v<T>
struct MessageCodec<T> {
  using Number = std::underlying_type_t<T>;
  static std::string schema() { return "enum:" + MessageCodec<Number>::schema(); }
  static void put(MessageWriter& out, T value) {
    MessageCodec<Number>::put(out, static_cast<Number>(value));
  }
  static T get(MessageReader& in) { return static_cast<T>(MessageCodec<Number>::get(in)); }
};

template <>
struct MessageCodec<std::string> {
  static std::string schema() { return "text"; }
  static void put(MessageWriter& out, std::string_view value) {
    out.count(value.size());
    out.put(value.data(), value.size());
  }
  static std::string get(MessageReader& in) {
    std::string value(in.count(1), '\0');
    in.get(value.data(), value.size());
    return value;
  }
};

template <>
struct MessageCodec<HostTensor> {
  static std::string schema() { return "tensor"; }
  static void put(MessageWriter& out, const HostTensor& tensor) { out.tensor(tensor); }
  static HostTensor get(MessageReader& in) { return in.tensor(); }
};

}  // namespace weft
