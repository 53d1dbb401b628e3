#include "spmd/passes/recompute.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "spmd/control/loops.hpp"
#include "spmd/fusion/fuse.hpp"
#include "spmd/fusion/spread.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

/// Returns the cost of one element of an op in a loop (ElementCosts). If the cost is negative, the
/// op must not be computed again.
double element_cost(const Program& program, OpId op, const Target& target) {
  const DType dtype = program.type(program.result(op)).dtype;
  const double cost = target.element_costs.of(row(program.kind(op)).cost->work);
  if (!target.compiled_dtypes.has(dtype) || cost < 0) return -1;
  return cost + (is_half(dtype) ? target.element_costs.half_result : 0);
}

class Recomputing {
 public:
  Recomputing(const Program& program, const Target& target)
      : program_(program),
        target_(target),
        ranges_(program),
        fused_(fused_loops(program, target)),
        loop_of_(program.num_ops(), kNoId),
        readers_(program.num_values()),
        is_kept_(program.num_values(), false),
        is_again_(program.num_values(), false) {
    for (std::uint32_t loop = 0; loop < fused_.size(); ++loop) {
      for (OpId op = fused_[loop].first; op < fused_[loop].first + fused_[loop].count; ++op) {
        if (is_elementwise(program.kind(op))) loop_of_[op] = loop;
      }
    }
    for (OpId op = 0; op < program.num_ops(); ++op) {
      for (const ValueId operand : program.op_operands(op)) {
        readers_[operand].push_back(op);
        if (loop_of_[op] == kNoId) is_kept_[operand] = true;
      }
    }
    for (const ProgramOutput& output : program.outputs) {
      is_kept_[output.value] = true;
      const OpId writer = program.defining_op(output.value);
      if (output.updates < 0 || writer == kNoId) continue;
      const bool is_in_loop = loop_of_[writer] != kNoId;
      written_[program.inputs[static_cast<std::size_t>(output.updates)].value] =
          is_in_loop ? fused_[loop_of_[writer]].first : writer;
    }
  }

  std::optional<Program> run() {
    for (std::uint32_t loop = 0; loop < fused_.size(); ++loop) choose(loop);
    if (std::ranges::find(is_again_, true) == is_again_.end()) return {};
    return rewritten();
  }

 private:
  /// The ops that a loop needs to compute some of its operands again.
  struct Again {
    std::set<OpId> ops;
    std::set<ValueId> sources;  ///< the values that these ops read
    bool is_possible = true;
  };

  std::uint32_t loop_of(ValueId value) const {
    const OpId maker = program_.defining_op(value);
    return maker == kNoId ? kNoId : loop_of_[maker];
  }
  double bytes(ValueId value) const {
    return static_cast<double>(byte_size(program_.type(value).dtype));
  }

  /// Returns whether the op's value is large, and only loops read it, among them a loop other than
  /// the op's.
  bool is_candidate(OpId op) const {
    const ValueId value = program_.result(op);
    const auto is_elsewhere = [&](OpId reader) { return loop_of_[reader] != loop_of_[op]; };
    return !is_kept_[value] && program_.type(value).bytes() >= target_.recomputed_bytes_min &&
           std::ranges::any_of(readers_[value], is_elsewhere) &&
           std::ranges::all_of(readers_[value], [&](OpId reader) {
             return ranges_.of_op(reader) == ranges_.of_op(op);
           });
  }

  /// Chooses which values of a loop other loops compute again: all candidates if that is cheaper in
  /// total, otherwise each candidate that is cheaper alone.
  void choose(std::uint32_t loop) {
    std::vector<ValueId> values;
    for (OpId op = fused_[loop].first; op < fused_[loop].first + fused_[loop].count; ++op) {
      if (loop_of_[op] == loop && is_candidate(op)) values.push_back(program_.result(op));
    }
    if (try_all(values)) return;
    for (const ValueId value : values) try_all({value});
  }

  bool try_all(const std::vector<ValueId>& values) {
    for (const ValueId value : values) is_again_[value] = true;
    if (!values.empty() && is_cheaper(values)) return true;
    for (const ValueId value : values) is_again_[value] = false;
    return false;
  }

  /// Returns whether computing the values again in each loop that reads them costs less than
  /// storing and loading them, and frees at least the memory of the sources that it keeps alive
  /// longer.
  bool is_cheaper(const std::vector<ValueId>& values) {
    double saved = 0;
    std::map<std::uint32_t, Again> loops;
    for (const ValueId value : values) {
      saved += bytes(value);
      std::set<std::uint32_t> reading;
      for (const OpId reader : readers_[value]) {
        if (loop_of_[reader] != loop_of(value)) reading.insert(loop_of_[reader]);
      }
      saved += bytes(value) * static_cast<double>(reading.size());
      for (const std::uint32_t loop : reading) collect(value, loop, loops[loop]);
    }
    double cost = 0;
    std::map<ValueId, double> kept;  // sources that must live longer
    for (const auto& [loop, again] : loops) {
      if (!again.is_possible) return false;
      for (const OpId op : again.ops) cost += element_cost(program_, op, target_);
      for (const ValueId source : again.sources) {
        if (!is_read_in(source, loop)) cost += bytes(source);
        const bool is_bound = program_.defining_op(source) == kNoId || readers_[source].empty();
        if (!is_bound && readers_[source].back() < fused_[loop].first) kept[source] = bytes(source);
      }
    }
    double freed = 0;
    for (const ValueId value : values) freed += bytes(value);
    for (const auto& [source, bytes] : kept) freed -= bytes;
    return cost < saved && freed >= 0;
  }

  bool is_read_in(ValueId value, std::uint32_t loop) const {
    return std::ranges::any_of(readers_[value],
                               [&](OpId reader) { return loop_of_[reader] == loop; });
  }

  /// Adds the ops with which the loop can compute the value from values in memory, fills, spreads
  /// and views.
  void collect(ValueId value, std::uint32_t loop, Again& again) const {
    const OpId op = program_.defining_op(value);
    if (!again.ops.insert(op).second) return;
    const bool is_costly = element_cost(program_, op, target_) < 0;
    if (is_costly || again.ops.size() > kOpsMax) again.is_possible = false;
    if (!again.is_possible) return;
    for (const ValueId operand : program_.op_operands(op)) {
      const OpId maker = program_.defining_op(operand);
      if (maker != kNoId && is_made_by_loops(program_, maker)) {
        // Unlike a fill or a spread, a view is as large as the result, so reading its operand has a
        // cost.
        if (is_view(program_, maker)) again.sources.insert(operand);
        require_unchanged(program_.op_operands(maker), loop, again);
      } else if (is_in_memory(operand)) {
        again.sources.insert(operand);
        require_unchanged(std::span(&operand, 1), loop, again);
      } else {
        collect(operand, loop, again);
      }
    }
  }

  /// Sets `is_possible` to false if one of the values may change before the loop, because it is a
  /// carry, or a state that an earlier op may overwrite.
  void require_unchanged(std::span<const ValueId> values, std::uint32_t loop, Again& again) const {
    for (const ValueId value : values) {
      const OpId maker = program_.defining_op(value);
      const auto writer = written_.find(value);
      const bool is_carry = maker != kNoId && program_.kind(maker) == OpKind::carry;
      const bool is_late = writer != written_.end() && fused_[loop].first >= writer->second;
      if (is_carry || is_late) again.is_possible = false;
    }
  }

  /// Returns whether the value is stored in memory, because no loop makes it, it is an output, or
  /// ops outside of its loop read it without computing it again.
  bool is_in_memory(ValueId value) const {
    if (is_kept_[value] || loop_of(value) == kNoId) return true;
    if (is_again_[value]) return false;
    return std::ranges::any_of(readers_[value],
                               [&](OpId reader) { return loop_of_[reader] != loop_of(value); });
  }

  Program rewritten() {
    Program result;
    result.begin_from(program_);
    value_of_.assign(program_.num_values(), kNoId);
    for (const ProgramInput& input : program_.inputs) {
      value_of_[input.value] = result.add_input(program_.type(input.value), input.kind, input.name,
                                                input.sharding, input.loc);
    }
    const std::vector<bool> is_dead = dead_ops();
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      if (loop_of_[op] != kNoId && loop_of_[op] != in_loop_) {
        in_loop_ = loop_of_[op];
        again_.clear();
      }
      if (is_dead[op]) continue;
      value_of_[program_.result(op)] = add_op(result, op);
    }
    for (const ProgramOutput& output : program_.outputs) {
      result.add_output(value_of_[output.value], output.name, output.sharding, output.updates);
    }
    return result;
  }

  /// Returns for each op whether it needn't run, because its value is needed only by loops that
  /// compute the value again.
  std::vector<bool> dead_ops() const {
    std::vector<bool> is_dead(program_.num_ops(), false);
    for (OpId op = program_.num_ops(); op-- > 0;) {
      const ValueId value = program_.result(op);
      if (loop_of_[op] == kNoId || is_in_memory(value)) continue;
      is_dead[op] = std::ranges::all_of(readers_[value], [&](OpId reader) {
        return is_dead[reader] || (is_again_[value] && loop_of_[reader] != loop_of_[op]);
      });
    }
    return is_dead;
  }

  /// Returns the new value that op `reader` reads for `value`. If it isn't in memory, first adds
  /// the ops that compute it again.
  ValueId read(Program& result, OpId reader, ValueId value) {
    const bool is_far = loop_of_[reader] != kNoId && loop_of(value) != kNoId &&
                        loop_of(value) != in_loop_ && !is_in_memory(value);
    if (!is_far) return value_of_[value];
    if (const auto found = again_.find(value); found != again_.end()) return found->second;
    return again_[value] = add_op(result, program_.defining_op(value));
  }

  ValueId add_op(Program& result, OpId op) {
    std::vector<ValueId> operands;
    for (const ValueId operand : program_.op_operands(op)) {
      operands.push_back(read(result, op, operand));
    }
    return result.add_op(program_.kind(op), operands, program_.op_attrs(op),
                         program_.type(program_.result(op)), program_.op_locs[op]);
  }

  static constexpr std::size_t kOpsMax = 32;

  const Program& program_;
  const Target& target_;
  const Loops ranges_;
  const std::vector<FusedLoop> fused_;
  std::vector<std::uint32_t> loop_of_;      // indexed by op; only for elementwise ops
  std::vector<std::vector<OpId>> readers_;  // indexed by value
  std::vector<bool> is_kept_;               // indexed by value: an output, or read outside of loops
  std::map<ValueId, OpId> written_;         // key: an updated input; the first op that may write it
  std::vector<bool> is_again_;              // indexed by value: whether other loops compute it
  std::vector<ValueId> value_of_;           // indexed by old value
  std::map<ValueId, ValueId> again_;        // key: an old value; its copy in the current loop
  std::uint32_t in_loop_ = kNoId;           // the loop of the last elementwise op
};

}  // namespace

std::optional<Program> recompute_in_loops(const Program& chip_program, const Target& target) {
  return Recomputing(chip_program, target).run();
}

}  // namespace weft
