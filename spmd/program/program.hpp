#pragma once
/// Program: a traced computation as flat arrays. Values and ops are 32-bit indices, in SSA order:
/// an op's operands come before it. The same structure represents the global program and a chip's
/// program.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <weft/tensor/type.hpp>

#include "spmd/mesh/sharding.hpp"
#include "spmd/program/op_kind.hpp"

namespace weft {

using ValueId = std::uint32_t;
using OpId = std::uint32_t;
inline constexpr std::uint32_t kNoId = 0xffffffffU;

enum class InputKind : std::uint8_t { param, opt_state, data, runtime_scalar, buffer };
std::string_view to_string(InputKind kind) noexcept;
/// Returns whether inputs of this kind persist from step to step under their names.
constexpr bool is_state(InputKind kind) {
  return kind == InputKind::param || kind == InputKind::opt_state || kind == InputKind::buffer;
}

/// The line of the user's source that created a value. Lines are interned; 0 means unknown.
using LocId = std::uint32_t;

struct ProgramInput {
  ValueId value = kNoId;
  InputKind kind = InputKind::data;
  std::string name;
  Sharding sharding;  ///< requested (global program) or actual (chip's program)
  LocId loc = 0;      ///< line of the call that made the input; not in the fingerprint
};

struct ProgramOutput {
  ValueId value = kNoId;
  std::string name;
  Sharding sharding;          ///< requested or actual, as for inputs
  std::int32_t updates = -1;  ///< index of the input (state) whose next version this is
};

/// The target of a custom_call. Its function is found by the name (custom_function.hpp).
struct CustomTarget {
  std::string name;
  std::string rule;  ///< how dims are sharded (rules/rule_text.hpp)

  friend bool operator==(const CustomTarget&, const CustomTarget&) = default;
};

struct Program {
  // The tables of values: the type, and the defining op (kNoId for an input).
  std::vector<TensorType> value_types;
  std::vector<OpId> value_ops;
  // The tables of ops.
  std::vector<OpKind> op_kinds;
  std::vector<std::uint32_t> operand_begin{0};  // n+1 entries: indices into operands
  std::vector<ValueId> operands;
  std::vector<ValueId> results;              // every op has one result
  std::vector<std::uint32_t> attr_begin{0};  // n+1 entries: indices into attrs
  std::vector<std::int64_t> attrs;
  std::vector<LocId> op_locs;  // not in the fingerprint
  // Side tables, to which attributes of ops refer by index.
  std::vector<std::byte> const_pool;  // each constant aligned to 8 bytes
  std::vector<Sharding> constraints;
  std::vector<CustomTarget> custom_targets;  // without duplicates
  std::vector<std::string> locs{""};         // "train.cpp:41"
  std::vector<ProgramInput> inputs;
  std::vector<ProgramOutput> outputs;

  std::uint32_t num_ops() const { return static_cast<std::uint32_t>(op_kinds.size()); }
  std::uint32_t num_values() const { return static_cast<std::uint32_t>(value_types.size()); }
  OpKind kind(OpId op) const { return op_kinds[op]; }
  ValueId result(OpId op) const { return results[op]; }
  const TensorType& type(ValueId value) const { return value_types[value]; }
  const Shape& shape(ValueId value) const { return value_types[value].shape; }
  OpId defining_op(ValueId value) const { return value_ops[value]; }
  std::span<const ValueId> op_operands(OpId op) const {
    return std::span(operands).subspan(operand_begin[op],
                                       operand_begin[op + 1] - operand_begin[op]);
  }
  std::span<const std::int64_t> op_attrs(OpId op) const {
    return std::span(attrs).subspan(attr_begin[op], attr_begin[op + 1] - attr_begin[op]);
  }
  /// Returns whether all elements of the result are equal, because the op is a constant of one
  /// value or broadcasts a scalar.
  bool is_fill(OpId op) const;
  /// Returns the target of a custom_call.
  const CustomTarget& custom_target(OpId op) const {
    return custom_targets[static_cast<std::size_t>(op_attrs(op)[0])];
  }
  /// Returns the "file:line" of an op, "" if unknown.
  const std::string& loc(OpId op) const { return locs[op_locs[op]]; }

  /// Appends an input without inference or checks (builder.hpp infers, verify.hpp checks).
  ValueId add_input(TensorType type, InputKind kind, std::string name, const Sharding& sharding,
                    LocId loc = 0);
  ValueId add_op(OpKind kind, std::span<const ValueId> op_operands,
                 std::span<const std::int64_t> op_attrs, TensorType result_type, LocId loc = 0);
  void add_output(ValueId value, std::string name, const Sharding& sharding,
                  std::int32_t updates = -1);
  /// Returns the index of the target in custom_targets; adds the target if it is new.
  std::int64_t intern_target(const CustomTarget& target);
  /// Returns the id of a "file:line" text.
  LocId intern_loc(std::string_view text);
  /// Reserves memory for as many values and ops as `other` has. A pass calls this, because it makes
  /// about as many.
  void reserve(const Program& other);
  /// Copies the side tables of `other`, so that a pass can copy ops of `other`, and reserves memory
  /// for as many values and ops. The program must be empty.
  void begin_from(const Program& other);
  /// Empties the program but keeps the memory of its tables for the next one.
  void clear();
};

}  // namespace weft
