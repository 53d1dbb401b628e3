#pragma once
/// MessageCodec for aggregates, and the macro WEFT_MESSAGE, which names their fields.

#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <weft/message/codec.hpp>
#include <weft/message/fields.hpp>

namespace weft {

/// A field of an aggregate that WEFT_MESSAGE lists.
template <typename T, typename Member>
struct MessageField {
  const char* name;
  Member T::*member;
};

/// The fields of T, if WEFT_MESSAGE lists them: it specializes this variable.
template <typename T>
inline constexpr std::tuple<> message_fields{};

namespace detail {

template <typename T>
concept NamedFields = std::tuple_size_v<std::remove_const_t<decltype(message_fields<T>)>> >
0;

/// The value of message_fields<T> for these fields.
template <typename... Field>
constexpr std::tuple<Field...> fields_of(const Field&... fields) {
  require_field_count<sizeof...(Field)>();
  return {fields...};
}

/// Calls f(name, member reference) for each field of a value; names are "" without WEFT_MESSAGE.
template <typename T, typename F>
void for_each_field(T& value, F f) {
  if constexpr (NamedFields<std::remove_const_t<T>>) {
    std::apply([&](const auto&... field) { (f(field.name, value.*field.member), ...); },
               message_fields<std::remove_const_t<T>>);
  } else {
    with_fields(value, [&](auto fields) {
      std::apply([&](auto&... field) { (f("", field), ...); }, fields);
    });
  }
}

/// Returns whether the type contains tensors, actors or pipes, which are more than bytes.
bool has_handles(std::string_view schema);
/// Returns the part of a schema that tells a field's default value: "=" and the value's bytes as
/// hex digits. Returns "" for a value without bytes, and if the default is all zeros and no part of
/// the type has another default.
std::string default_in_schema(std::string_view schema, const MessageWriter& value);

}  // namespace detail

/// Writes an aggregate field by field. Its schema is "{i64,i64}", or "{begin:i64,end:i64}" with
/// WEFT_MESSAGE. Fields with names also have their default values, unless these are 0:
/// "{rate:f32=0000803f}".
template <typename T>
requires std::is_aggregate_v<T> && std::is_class_v<T>
struct MessageCodec<T> {
  static std::string schema() {
    std::string text = "{";
    T value{};
    detail::for_each_field(value, [&]<typename Field>(std::string_view name, const Field& field) {
      if (text.size() > 1) text += ",";
      const std::string schema = MessageCodec<Field>::schema();
      if (name.empty()) {
        text += schema;
      } else {
        MessageWriter initial;
        if (!detail::has_handles(schema)) MessageCodec<Field>::put(initial, field);
        text.append(name).append(":") += schema + detail::default_in_schema(schema, initial);
      }
    });
    return text + "}";
  }
  static void put(MessageWriter& out, const T& value) {
    detail::for_each_field(value, [&]<typename Field>(std::string_view, const Field& field) {
      MessageCodec<Field>::put(out, field);
    });
  }
  static T get(MessageReader& in) {
    T value{};
    detail::for_each_field(value, [&]<typename Field>(std::string_view, Field& field) {
      field = MessageCodec<Field>::get(in);
    });
    return value;
  }
};

}  // namespace weft

/// Names the fields of an aggregate, at most 16. Use it at namespace scope outside any namespace.
/// Other programs then match fields by name, so fields can be added and removed.
#define WEFT_MESSAGE(T, ...)                      \
  template <>                                     \
  inline constexpr auto weft::message_fields<T> = \
      weft::detail::fields_of(WEFT_MESSAGE_SCAN(WEFT_MESSAGE_FIELDS(T, __VA_ARGS__)))

// The preprocessor expands no macro within its own expansion, so WEFT_MESSAGE_FIELDS leaves the
// names after the first to a later scan. There are enough scans for 60 names, so that the error for
// over 16 names is that of fields_of().
#define WEFT_MESSAGE_FIELDS(T, name, ...)   \
  weft::MessageField<T, decltype(T::name)>{ \
      #name, &T::name} __VA_OPT__(, WEFT_MESSAGE_MORE WEFT_MESSAGE_PARENTHESES(T, __VA_ARGS__))
#define WEFT_MESSAGE_MORE() WEFT_MESSAGE_FIELDS
#define WEFT_MESSAGE_PARENTHESES ()
#define WEFT_MESSAGE_SCAN(...) \
  WEFT_MESSAGE_SCAN_A(WEFT_MESSAGE_SCAN_A(WEFT_MESSAGE_SCAN_A(WEFT_MESSAGE_SCAN_A(__VA_ARGS__))))
#define WEFT_MESSAGE_SCAN_A(...) \
  WEFT_MESSAGE_SCAN_B(WEFT_MESSAGE_SCAN_B(WEFT_MESSAGE_SCAN_B(WEFT_MESSAGE_SCAN_B(__VA_ARGS__))))
#define WEFT_MESSAGE_SCAN_B(...) \
  WEFT_MESSAGE_SCAN_C(WEFT_MESSAGE_SCAN_C(WEFT_MESSAGE_SCAN_C(WEFT_MESSAGE_SCAN_C(__VA_ARGS__))))
#define WEFT_MESSAGE_SCAN_C(...) __VA_ARGS__
