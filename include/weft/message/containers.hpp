#pragma once
/// MessageCodec for std::vector, std::array, std::optional and std::map.

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <weft/message/codec.hpp>

namespace weft {

template <typename T>
struct MessageCodec<std::vector<T>> {
  static std::string schema() { return MessageCodec<T>::schema() + "[]"; }
  static void put(MessageWriter& out, const std::vector<T>& values) {
    out.count(values.size());
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      out.put(values.data(), values.size() * sizeof(T));
    } else {
      for (const auto& value : values) MessageCodec<T>::put(out, value);
    }
  }
  static std::vector<T> get(MessageReader& in) {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      std::vector<T> values(in.count(sizeof(T)));
      in.get(values.data(), values.size() * sizeof(T));
      return values;
    } else {
      const std::size_t size = in.count(0);
      std::vector<T> values;
      for (std::size_t i = 0; i < size; ++i) values.push_back(MessageCodec<T>::get(in));
      return values;
    }
  }
};

template <typename T, std::size_t N>
struct MessageCodec<std::array<T, N>> {
  static std::string schema() { return MessageCodec<T>::schema() + "[" + std::to_string(N) + "]"; }
  static void put(MessageWriter& out, const std::array<T, N>& values) {
    for (const T& value : values) MessageCodec<T>::put(out, value);
  }
  static std::array<T, N> get(MessageReader& in) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      // A braced list evaluates its elements from left to right, so they are read in order.
      return std::array<T, N>{((void)I, MessageCodec<T>::get(in))...};
    }
    (std::make_index_sequence<N>{});
  }
};

template <typename T>
struct MessageCodec<std::optional<T>> {
  static std::string schema() { return MessageCodec<T>::schema() + "?"; }
  static void put(MessageWriter& out, const std::optional<T>& value) {
    MessageCodec<bool>::put(out, value.has_value());
    if (value) MessageCodec<T>::put(out, *value);
  }
  static std::optional<T> get(MessageReader& in) {
    if (!in.boolean()) return std::nullopt;
    return MessageCodec<T>::get(in);
  }
};

template <typename Key, typename T>
struct MessageCodec<std::map<Key, T>> {
  static std::string schema() {
    return "map<" + MessageCodec<Key>::schema() + "," + MessageCodec<T>::schema() + ">";
  }
  static void put(MessageWriter& out, const std::map<Key, T>& values) {
    out.count(values.size());
    for (const auto& [key, value] : values) {
      MessageCodec<Key>::put(out, key);
      MessageCodec<T>::put(out, value);
    }
  }
  static std::map<Key, T> get(MessageReader& in) {
    std::map<Key, T> values;
    for (std::size_t left = in.count(0); left > 0; --left) {
      Key key = MessageCodec<Key>::get(in);
      values.emplace(std::move(key), MessageCodec<T>::get(in));
    }
    return values;
  }
};

}  // namespace weft
