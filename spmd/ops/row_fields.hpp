#pragma once
/// Defines the types of the fields of OpRow.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spmd/ops/attribute_views.hpp"
#include "spmd/ops/attributes.hpp"
#include "spmd/ops/evaluation.hpp"
#include "spmd/program/program.hpp"
#include "spmd/rules/rule_reader.hpp"
#include "spmd/target/cost.hpp"

namespace weft {

class Builder;
struct OpSignature;

struct None {};
inline constexpr None none;  ///< an explicit "none" as the value of a field

/// A field that every row must fill in. It has no default, so a row without it doesn't compile.
template <typename T>
class Said {
 public:
  template <std::convertible_to<T> U>
  constexpr Said(const U& answer) : answer_(answer) {}
  constexpr Said(None) : answer_{} {}
  constexpr const T& operator*() const { return answer_; }
  constexpr const T* operator->() const { return &answer_; }

 private:
  T answer_;
};

/// The allowed numbers of operands.
struct OperandCount {
  std::uint8_t least = 0;
  std::uint8_t most = 0;
};
constexpr OperandCount operands(std::uint8_t least, std::uint8_t most) { return {least, most}; }
constexpr OperandCount operands(std::uint8_t count) { return {count, count}; }

using Infer = TensorType (*)(const OpSignature&);

/// Says how the dims of operands and result correspond. A text says it, or, if the attributes
/// decide it, a function. The rule `none` is for ops that never occur in a global program.
struct Rule {
  RuleText text{};
  FactorRule (*function)(const Program&, OpId) = nullptr;
  consteval Rule(const char* rule) : text(own_rule(rule)) {}
  constexpr Rule(FactorRule (*rule)(const Program&, OpId)) : function(rule) {}
  constexpr Rule() = default;
};

/// Says when propagation handles the op.
enum class Spreads : std::uint8_t {
  later,
  first,      ///< elementwise ops, reshape, transpose
  broadcast,  ///< after all `first` ops; until the last round only from result to operand
};

/// Adapts the sizes in a chip's attribute words that the op's list of Attr doesn't describe.
using Resize = void (*)(std::span<std::int64_t> words, const Shape& whole, const Shape& part);

/// Says whether the op's dims may be padded.
enum class Pads : std::uint8_t {
  no,
  yes,
  if_fill,     ///< only if the op is a fill
  with_zeros,  ///< only if the padding of its operands is 0
};

/// The effect of an op on one operand if the other is a number. Of a multiplication, either operand
/// may be the number.
enum class Scaling : std::uint8_t { nothing, negates, multiplies, divides, raises };

/// Says which operands may stay partial sums while the other parts of the sums are on other chips.
/// The result is then a partial sum too.
struct Linearity {
  enum class In : std::uint8_t { nothing, first, one, all_together };
  In in = In::nothing;
  bool (*holds)(Words words, DType dtype) = nullptr;  ///< null: always
  Scaling scaling = Scaling::nothing;
};

/// A copy of an op, because the program's arrays may move while the op's gradient is appended.
struct ForwardOp {
  OpKind kind;
  std::vector<ValueId> operands;
  std::vector<std::int64_t> attrs;
  ValueId result;
};

/// Says how cotangents pass from the result to the operands. With `none` they don't, because the
/// result counts as constant.
struct Gradient {
  enum class How : std::uint8_t {
    constant,
    function,
    decomposition,  ///< the gradient of the ops that decompose() makes
    target,         ///< the vjp of the custom op makes it
    loop,           ///< the op is at the border of a loop, and its gradient is made with the loop's
    refused,        ///< none, since the op never occurs in a program that is differentiated
  };
  /// Appends the cotangent of operand `index`, given the result's cotangent. Returns kNoId if the
  /// gradient of the decomposition must be used.
  using Function = ValueId (*)(Builder&, const ForwardOp&, std::size_t index, ValueId cotangent);
  How how = How::constant;
  Function function = nullptr;
  constexpr Gradient() = default;
  constexpr Gradient(How how_it_goes) : how(how_it_goes) {}
  constexpr Gradient(Function f) : how(How::function), function(f) {}
};
inline constexpr Gradient by_decomposition{Gradient::How::decomposition};

/// Appends primitives that compute the same as the op. For global programs.
using Decompose = ValueId (*)(Builder&, std::span<const ValueId> operands, Words attrs);

/// Says whether each element of the result is an element of the first operand, perhaps in another
/// dtype. At the border of a loop or branch, it is the second operand.
enum class Picks : std::uint8_t {
  nothing,
  some,
  all,  ///< the result also has every element of the operand
};

struct Traits {
  bool elementwise = false;  ///< runs in one loop together with adjacent elementwise ops
  bool moves_only = false;   ///< not reported as a value's origin: copies, barriers, collectives
  bool on_demand = false;    ///< each chip can make the result by itself, in any layout
  bool near = false;         ///< cheap, so it may move forward to fill a bucket of all_reduces
  bool product = false;      ///< checkpoint(save_dots) keeps the result
  bool unique = false;       ///< never merged with an equal op
  bool meets = false;        ///< waits for other chips: a collective
  bool permutes = false;     ///< each chip receives from only one chip
  bool border = false;       ///< is at the border of a loop, which is the op's first operand
  bool vanishes = false;     ///< affects only gradients; later, the op is replaced by its operand
  /// Computes bf16 and f16 in f32 and rounds once, even if each chip computes only a part. The op's
  /// primitives and partial sums are then f32, and it returns partial sums in f32 on request.
  bool rounds_once = false;
  Picks picks = Picks::nothing;
  std::int8_t reads_part_of = -1;  ///< only a part of this operand, as large as the result, is read
  Reorder reorder = Reorder::refused;  ///< elementwise ops need no entry
};

}  // namespace weft
