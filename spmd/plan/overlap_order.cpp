#include "spmd/plan/overlap_order.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "spmd/control/loops.hpp"
#include "spmd/fusion/spread.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/bucket.hpp"
#include "spmd/plan/overlap.hpp"
#include "spmd/plan/step_cost.hpp"

namespace weft {
namespace {

/// Returns whether the op needs at most one flop for each element that it reads or writes. A
/// custom_call isn't cheap, because its work is unknown.
bool is_cheap(const Program& program, OpId op, const Mesh& mesh) {
  if (table_of(program.kind(op)) == Form::target) return false;
  std::int64_t elements = program.shape(program.result(op)).num_elements();
  for (const ValueId operand : program.op_operands(op)) {
    elements += program.shape(operand).num_elements();
  }
  return flops_of(program, op, mesh) <= elements;
}

/// Moves ops of a chip's program around its collectives between hosts: the ops that make an operand
/// forward, and the ops that read a result to the end.
class OverlapOrder {
 public:
  OverlapOrder(const Program& program, const Mesh& mesh)
      : program_(program),
        mesh_(mesh),
        depends_(program.num_values(), false),
        is_delayed_(program.num_ops(), false),
        is_feeding_(program.num_ops(), false),
        number_of_(program.num_values(), 0),
        key_(program.num_ops(), 0) {
    find_dependent();
    find_delayed();
    find_feeding();
    number_collectives();
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      if (is_delayed_[op]) delayed_.push_back(op);
    }
  }

  std::optional<Program> run() {
    if (delayed_.empty() && std::ranges::find(is_feeding_, true) == is_feeding_.end()) return {};
    std::ranges::stable_sort(delayed_, {}, [&](OpId op) { return key_[op]; });
    return in_order(delayed_);
  }

  std::vector<OpId> groups() const {
    std::vector<OpId> first;
    for (std::size_t i = 0; i < delayed_.size(); ++i) {
      if (i == 0 || key_[delayed_[i]] != key_[delayed_[i - 1]]) first.push_back(delayed_[i]);
    }
    return first;
  }

 private:
  bool reads_dependent(OpId op) const {
    return std::ranges::any_of(program_.op_operands(op),
                               [&](ValueId operand) { return depends_[operand]; });
  }

  void find_dependent() {
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      depends_[program_.result(op)] = reads_dependent(op) || is_between_hosts(program_, op, mesh_);
    }
  }

  /// Finds the ops that may run as soon as their operands are computed: collectives between hosts,
  /// and the ops whose results only these collectives read. An all_reduce within the host that
  /// shares a bucket with others isn't moved.
  void find_feeding() {
    std::vector<bool> is_read_by_feeding(program_.num_values(), false);
    std::vector<bool> is_read_by_others(program_.num_values(), false);
    for (OpId op = program_.num_ops(); op-- > 0;) {
      const ValueId result = program_.result(op);
      const bool may_move = !is_delayed_[op] && !reads_dependent(op) && loops_.of_op(op) == kNoId;
      is_feeding_[op] = may_move && (is_between_hosts(program_, op, mesh_) ||
                                     (is_read_by_feeding[result] && brings(op) &&
                                      (moves_data(op) || !is_read_by_others[result])));
      for (const ValueId operand : program_.op_operands(op)) {
        (is_feeding_[op] ? is_read_by_feeding : is_read_by_others)[operand] = true;
      }
    }
  }
  bool brings(OpId op) const {
    return program_.kind(op) != OpKind::all_reduce && is_cheap(program_, op, mesh_);
  }
  bool moves_data(OpId op) const {
    const OpKind kind = program_.kind(op);
    return is_collective(kind) || (!is_elementwise(kind) && !is_made_by_loops(program_, op) &&
                                   flops_of(program_, op, mesh_) == 0);
  }

  void find_delayed() {
    std::vector<bool> is_read(program_.num_values(), false);
    std::vector<bool> is_read_early(program_.num_values(), false);
    for (OpId op = program_.num_ops(); op-- > 0;) {
      const ValueId result = program_.result(op);
      const OpKind kind = program_.kind(op);
      const bool may_wait =
          reads_dependent(op)
              ? is_cheap(program_, op, mesh_)
              : is_read[result] && (is_elementwise(kind) || is_made_by_loops(program_, op));
      is_delayed_[op] = may_wait && !is_read_early[result] && loops_.of_op(op) == kNoId;
      for (const ValueId operand : program_.op_operands(op)) {
        is_read[operand] = true;
        if (!is_delayed_[op]) is_read_early[operand] = true;
      }
    }
  }

  /// Numbers the buckets of collectives between hosts in the order in which they begin. The key of
  /// a delayed op is the last number of the buckets on which the op depends. If the op depends on
  /// no bucket, its key is the least key of its readers, so that it stays with them.
  void number_collectives() {
    std::uint32_t count = 0;
    std::vector<bool> joins(program_.num_ops(), false);  // the bucket of the previous op
    for (const Bucket& bucket : buckets(program_)) {
      for (OpId op = bucket.first + 1; op < bucket.first + bucket.count; ++op) joins[op] = true;
    }
    for (const bool is_delayed : {false, true}) {
      for (OpId op = 0; op < program_.num_ops(); ++op) {
        if (is_delayed_[op] != is_delayed) continue;
        for (const ValueId operand : program_.op_operands(op)) {
          key_[op] = std::max(key_[op], number_of_[operand]);
        }
        const bool is_numbered = is_between_hosts(program_, op, mesh_);
        if (is_numbered && !joins[op]) ++count;
        number_of_[program_.result(op)] = is_numbered ? count : key_[op];
      }
    }
    std::vector<std::uint32_t> least(program_.num_values(), count);
    for (OpId op = program_.num_ops(); op-- > 0;) {
      if (!is_delayed_[op]) continue;
      if (!reads_dependent(op)) key_[op] = least[program_.result(op)];
      for (const ValueId operand : program_.op_operands(op)) {
        least[operand] = std::min(least[operand], key_[op]);
      }
    }
  }

  /// Returns for each value the feeding ops (find_feeding()) that read it, the last op first.
  std::vector<std::vector<OpId>> feeding_readers() const {
    std::vector<std::vector<OpId>> readers(program_.num_values());
    for (OpId op = program_.num_ops(); op-- > 0;) {
      if (!is_feeding_[op]) continue;
      for (const ValueId operand : program_.op_operands(op)) {
        if (readers[operand].empty() || readers[operand].back() != op) {
          readers[operand].push_back(op);
        }
      }
    }
    return readers;
  }

  Program in_order(std::span<const OpId> delayed) const {
    Program result;
    std::vector<ValueId> value_of(program_.num_values(), kNoId);
    result.begin_from(program_);
    for (const ProgramInput& input : program_.inputs) {
      value_of[input.value] = result.add_input(program_.type(input.value), input.kind, input.name,
                                               input.sharding, input.loc);
    }
    const auto add = [&](OpId op) {
      std::vector<ValueId> operands;
      for (const ValueId operand : program_.op_operands(op)) operands.push_back(value_of[operand]);
      const ValueId value = program_.result(op);
      value_of[value] = result.add_op(program_.kind(op), operands, program_.op_attrs(op),
                                      program_.type(value), program_.op_locs[op]);
    };
    const auto is_ready = [&](OpId op) {
      return std::ranges::none_of(program_.op_operands(op),
                                  [&](ValueId operand) { return value_of[operand] == kNoId; });
    };
    const std::vector<std::vector<OpId>> feeding = feeding_readers();
    std::vector<OpId> next;  // a stack of ops to emit
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      if (!is_delayed_[op] && value_of[program_.result(op)] == kNoId) next.push_back(op);
      while (!next.empty()) {
        const OpId now = next.back();
        next.pop_back();
        add(now);
        if (loops_.of_op(now) != kNoId) continue;  // the loop may not have ended
        for (const OpId reader : feeding[program_.result(now)]) {
          if (is_ready(reader)) next.push_back(reader);
        }
      }
    }
    std::ranges::for_each(delayed, add);
    for (const ProgramOutput& output : program_.outputs) {
      result.add_output(value_of[output.value], output.name, output.sharding, output.updates);
    }
    return result;
  }

  const Program& program_;
  const Mesh& mesh_;
  const Loops loops_{program_};
  std::vector<bool> depends_;             // indexed by value: on a collective between hosts?
  std::vector<bool> is_delayed_;          // indexed by op
  std::vector<bool> is_feeding_;          // indexed by op
  std::vector<std::uint32_t> number_of_;  // by value: the last collective on which it depends
  std::vector<std::uint32_t> key_;        // indexed by op
  std::vector<OpId> delayed_;
};

}  // namespace

std::optional<Program> reorder_for_overlap(const Program& chip_program, const Mesh& mesh,
                                           const Target& target) {
  if (!may_overlap(mesh, target)) return {};
  return OverlapOrder(chip_program, mesh).run();
}

std::vector<OpId> delayed_groups(const Program& chip_program, const Mesh& mesh,
                                 const Target& target) {
  if (!may_overlap(mesh, target)) return {};
  return OverlapOrder(chip_program, mesh).groups();
}

}  // namespace weft
