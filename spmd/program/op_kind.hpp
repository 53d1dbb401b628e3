#pragma once
/// OpKind: the operations of a Program. Each op is described by its row (ops/rows.hpp).

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "spmd/program/op_list.hpp"

namespace weft {

#define WEFT_KIND(name, number) name = number,
enum class OpKind : std::uint16_t { WEFT_OPS(WEFT_KIND) };
#undef WEFT_KIND

/// Every number of an OpKind is smaller.
inline constexpr std::size_t kOpNumberMax = 256;

enum class CompareDirection : std::uint8_t { eq, ne, lt, le, gt, ge };
/// "eq", "ne", ...
std::string_view to_string(CompareDirection direction) noexcept;

/// "dot_general".
std::string_view to_string(OpKind kind) noexcept;
/// Whether there is an op of this number.
bool is_op_kind(std::uint16_t number) noexcept;
/// Throws invalid_argument for an unknown name.
OpKind parse_op_kind(std::string_view name);

/// Most operands of a concatenate; Builder::concatenate splits longer lists.
inline constexpr std::size_t kConcatenateCountMax = 8;
inline constexpr std::size_t kCustomOperandCountMax = 8;
/// Most operands of any op.
inline constexpr std::size_t kOperandCountMax = 8;

}  // namespace weft
