#include "spmd/text/element_text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "spmd/program/element.hpp"

namespace weft {
namespace {

template <typename T>
bool parse_whole(std::string_view text, T& value, int base = 10) {
  std::from_chars_result result{};
  const char* const end = text.data() + text.size();
  if constexpr (std::is_floating_point_v<T>) {
    result = std::from_chars(text.data(), end, value);
  } else {
    result = std::from_chars(text.data(), end, value, base);
  }
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

std::string element_text(DType dtype, const std::byte* bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, static_cast<std::size_t>(byte_size(dtype)));
  if (dtype == DType::i64) return fmt::format("{}", static_cast<std::int64_t>(bits));
  const double value = load_element(dtype, bytes);
  if (std::isnan(value)) return fmt::format("{:#x}", bits);
  if (is_half(dtype) || dtype == DType::f32) {
    return fmt::format("{}", static_cast<float>(value));
  }
  return fmt::format("{}", value);
}

bool append_element(DType dtype, std::string_view text, std::vector<std::byte>& bytes) {
  std::array<std::byte, 8> element{};
  std::uint64_t bits = 0;
  std::int64_t integer = 0;
  float narrow = 0;
  double wide = 0;
  if (is_floating(dtype) && text.starts_with("0x")) {
    if (!parse_whole(text.substr(2), bits, 16)) return false;
    std::memcpy(element.data(), &bits, element.size());
  } else if (!is_floating(dtype)) {
    if (!parse_whole(text, integer)) return false;
    std::memcpy(element.data(), &integer, element.size());
    if (dtype != DType::i64) {
      store_element(dtype, static_cast<double>(integer), element.data());
      if (load_element(dtype, element.data()) != static_cast<double>(integer)) return false;
    }
  } else if (dtype == DType::f64) {
    if (!parse_whole(text, wide)) return false;
    store_element(dtype, wide, element.data());
  } else {
    // The text is read as float, because reading it as double would round twice.
    if (!parse_whole(text, narrow)) return false;
    store_element(dtype, narrow, element.data());
  }
  bytes.insert(bytes.end(), element.begin(), element.begin() + byte_size(dtype));
  return true;
}

}  // namespace weft
