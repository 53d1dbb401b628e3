// Writes the checks for faults: records the first fault, and looks for NaN and infinity. Reads what
// they have found.

#include <array>

#include <weft/tensor/error.hpp>

#include "spmd/ops/row.hpp"
#include "spmd/program/index_check.hpp"
#include "spmd/stablehlo/lowering.hpp"
#include "spmd/stablehlo/stablehlo.hpp"

namespace weft {
namespace {

enum What : std::int64_t { made_nan = 1, made_infinity = 2, read_nan = 3 };

/// Scalars that say whether a tensor has a NaN and whether it has an infinity.
struct Anomalies {
  HloValue nan;
  HloValue infinity;
};

HloValue any_of(HloWriter& w, const HloValue& predicate) {
  return w.reduce("or", predicate, 0, consecutive_dims(0, predicate.type.rank()));
}

Anomalies anomalies_of(HloWriter& w, const HloValue& x) {
  const HloValue is_nan = w.compare("NE", {x, x});
  const HloValue is_finite = w.op("is_finite", {x}, x.type.with("i1"));
  const HloValue is_infinite = w.unary("not", w.binary("or", {is_nan, is_finite}));
  return {any_of(w, is_nan), any_of(w, is_infinite)};
}

/// Returns whether no op of the chip computed the operand: it is an input or came from other chips.
bool is_given(const HloOp& op, std::size_t operand) {
  const OpId maker = op.program.defining_op(op.program.op_operands(op.op)[operand]);
  return maker == kNoId || is_collective(op.program.kind(maker));
}

}  // namespace

void add_fault(const HloOp& op, const HloValue& is_found, const HloValue& what) {
  HloWriter& w = op.write();
  HloValue& faults = op.context.faults;
  const HloType one{"i32", {1}};
  const HloValue fault = w.op("concatenate", {w.splat(one, op.op), w.reshape(what, {1})},
                              faults.type, "dimension = 0 : i64");
  const HloValue first = w.reshape(w.slice(faults, {0}, {1}, {1}), {});
  const HloValue is_first = w.compare("LT", {first, w.splat(first.type, 0)});
  faults = w.select({w.binary("and", {is_first, is_found}), fault, faults});
}

void look_for_anomaly(const HloOp& op, const HloValue& result) {
  if (!is_floating(op.dtype()) || op.operands.empty() || is_collective(op.kind())) return;
  HloWriter& w = op.write();
  const HloType flag{"i1", {}};
  HloValue reads = w.splat(flag, 0);
  HloValue had_nan = reads;
  HloValue had_infinity = reads;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (!op.operand_type(i).is_floating()) continue;
    const Anomalies before = anomalies_of(w, op.operand(i));
    if (is_given(op, i)) reads = w.binary("or", {reads, before.nan});
    had_nan = w.binary("or", {had_nan, before.nan});
    had_infinity = w.binary("or", {had_infinity, before.infinity});
  }
  const Anomalies after = anomalies_of(w, result);
  const HloValue no_nan = w.unary("not", had_nan);
  const HloValue makes_nan = w.binary("and", {after.nan, no_nan});
  const HloValue makes_infinity =
      w.binary("and", {after.infinity, w.binary("and", {no_nan, w.unary("not", had_infinity)})});
  const auto number = [&](What what) { return w.splat({"i32", {}}, static_cast<double>(what)); };
  const HloValue what = w.select(
      {reads, number(read_nan), w.select({makes_nan, number(made_nan), number(made_infinity)})});
  add_fault(op, w.binary("or", {reads, w.binary("or", {makes_nan, makes_infinity})}), what);
}

void throw_fault(const Program& program, const std::array<std::int32_t, 2>& faults) {
  const auto [number, what] = faults;
  if (number < 0) return;
  const auto op = static_cast<OpId>(number);
  if (program.kind(op) == OpKind::check_index) {
    const ValueId source = picked_from(program, program.op_operands(op)[0]);
    IndexCheck(program, op, source).refuse(what);
  }
  constexpr std::array kFound{"?", "computes a nan", "computes an infinity", "reads a nan"};
  const std::string& loc = program.loc(op);
  fail(Errc::invalid_argument, "detect_anomaly: {} {} in {}; check the values of its operands{}",
       to_string(program.kind(op)), kFound.at(static_cast<std::size_t>(what)),
       program.type(program.result(op)).to_string(), loc.empty() ? "" : " (at " + loc + ")");
}

}  // namespace weft
