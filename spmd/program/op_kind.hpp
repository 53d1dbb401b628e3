#pragma once
/// OpKind: the operations of a Program. The row of each op describes it (ops/row.hpp).

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "spmd/program/op_list.hpp"

namespace weft {

#define WEFT_KIND(name, number) name = number,
enum class OpKind : std::uint16_t { WEFT_OPS(WEFT_KIND) };
#undef WEFT_KIND

/// All OpKinds have numbers below this limit.
inline constexpr std::size_t kOpNumberMax = 256;

enum class CompareDirection : std::uint8_t { eq, ne, lt, le, gt, ge };
/// Returns a name such as "eq" or "ne".
std::string_view to_string(CompareDirection direction) noexcept;

/// Returns a name such as "dot_general".
std::string_view to_string(OpKind kind) noexcept;
/// Returns whether there is an op with this number.
bool is_op_kind(std::uint16_t number) noexcept;
/// Returns the op with this name. Throws invalid_argument for an unknown name.
OpKind parse_op_kind(std::string_view name);

/// The largest number of operands of a concatenate; Builder::concatenate splits longer lists.
inline constexpr std::size_t kConcatenateCountMax = 8;
inline constexpr std::size_t kCustomOperandCountMax = 8;
/// The largest number of operands of any op.
inline constexpr std::size_t kOperandCountMax = 8;

}  // namespace weft
