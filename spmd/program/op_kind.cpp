#include "spmd/program/op_kind.hpp"

#include <algorithm>
#include <array>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// The names by number; "" for a number without an op.
constexpr std::array<std::string_view, kOpNumberMax> kNames = [] {
  std::array<std::string_view, kOpNumberMax> names{};
#define WEFT_NAME(name, number) names[number] = #name;
  WEFT_OPS(WEFT_NAME)
#undef WEFT_NAME
  return names;
}();

constexpr std::array<std::string_view, 6> kDirections{"eq", "ne", "lt", "le", "gt", "ge"};

}  // namespace

std::string_view to_string(CompareDirection direction) noexcept {
  const auto number = static_cast<std::size_t>(direction);
  return number < kDirections.size() ? kDirections[number] : "unknown";
}

std::string_view to_string(OpKind kind) noexcept {
  const auto number = static_cast<std::uint16_t>(kind);
  return is_op_kind(number) ? kNames[number] : "unknown";
}

bool is_op_kind(std::uint16_t number) noexcept {
  return number < kNames.size() && !kNames[number].empty();
}

OpKind parse_op_kind(std::string_view name) {
  const auto found = name.empty() ? kNames.end() : std::ranges::find(kNames, name);
  if (found == kNames.end()) {
    fail(Errc::invalid_argument,
         "\"{}\" isn't an op; ops have StableHLO's names, such as dot_general", name);
  }
  return static_cast<OpKind>(found - kNames.begin());
}

}  // namespace weft
