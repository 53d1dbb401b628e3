#include "data/datasets/number_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>

#include "spmd/program/element.hpp"

namespace weft {
namespace {

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  text = text.substr(0, text.find_last_not_of(" \t") + 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

template <typename T>
bool store_integer(std::string_view text, std::byte* out) {
  const std::optional<T> value = parse_number<T>(text);
  if (value) std::memcpy(out, &*value, sizeof(T));
  return value.has_value();
}

}  // namespace

bool store_number(const NumberText& form, std::string_view text, std::byte* out) {
  switch (form.dtype) {
    case DType::i32: return store_integer<std::int32_t>(text, out);
    case DType::u32: return store_integer<std::uint32_t>(text, out);
    case DType::i8: return store_integer<std::int8_t>(text, out);
    case DType::u8: return store_integer<std::uint8_t>(text, out);
    case DType::i64: return store_integer<std::int64_t>(text, out);
    case DType::pred: return store_integer<std::uint8_t>(text, out) && *out <= std::byte{1};
    default: break;
  }
  const std::optional<double> value = parse_number<double>(text);
  if (value) store_element(form.dtype, *value * form.scale + form.offset, out);
  return value.has_value();
}

bool is_number(std::string_view text) { return parse_number<double>(text).has_value(); }

}  // namespace weft
