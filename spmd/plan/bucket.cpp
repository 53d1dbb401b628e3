#include "spmd/plan/bucket.hpp"

#include <algorithm>

#include <weft/tensor/error.hpp>

#include "spmd/control/loops.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

/// Decides which all_reduces may share a bucket with others.
class Eligible {
 public:
  explicit Eligible(const Program& program) : program_(program), uses_(program.num_values(), 0) {
    for (OpId op = 0; op < program.num_ops(); ++op) {
      if (program.kind(op) == OpKind::all_reduce) ++uses_[program.op_operands(op)[0]];
    }
  }

  /// Returns whether the all_reduce may share a bucket. The operand and the result must be in no
  /// other all_reduce, because a value has only one place in memory, in the range of one bucket.
  /// The operand can't be a carry, because the carry's `next` has the same place and may be the
  /// operand of another all_reduce.
  bool operator()(OpId op) const {
    const ValueId operand = program_.op_operands(op)[0];
    const OpId maker = program_.defining_op(operand);
    return uses_[operand] == 1 && uses_[program_.result(op)] == 0 &&
           (maker == kNoId ||
            (program_.kind(maker) != OpKind::all_reduce && program_.kind(maker) != OpKind::carry));
  }

 private:
  const Program& program_;
  std::vector<int> uses_;  // indexed by value: the number of all_reduces that read it
};

bool are_alike(const Program& program, OpId a, OpId b) {
  return std::ranges::equal(program.op_attrs(a), program.op_attrs(b)) &&
         program.type(program.result(a)).dtype == program.type(program.result(b)).dtype;
}

std::int64_t bytes(const Program& program, OpId op) {
  return program.type(program.result(op)).bytes();
}

/// The maximal number of ops that are moved forward to make an operand. Clipping, scaling and
/// converting a gradient needs no more ops.
constexpr int kBroughtForwardMax = 8;

/// Copies a program and groups its all_reduces in buckets. An all_reduce joins a bucket once its
/// operand is emitted. A bucket is emitted when an op needs a result of the bucket. Just before,
/// more all_reduces join the bucket if their operands need only few cheap ops.
class Filling {
 public:
  explicit Filling(const Program& program)
      : program_(program),
        eligible_(program),
        loops_(program),
        value_of_(program.num_values(), kNoId),
        reduction_of_(program.num_values(), kNoId) {
    for (OpId op = 0; op < program.num_ops(); ++op) {
      if (!is_kept_back(op)) continue;
      reduction_of_[program.op_operands(op)[0]] = op;
      kept_back_.push_back(op);
    }
    result_.begin_from(program);
  }

  Program run() {
    for (const ProgramInput& input : program_.inputs) {
      value_of_[input.value] = result_.add_input(program_.type(input.value), input.kind, input.name,
                                                 input.sharding, input.loc);
      keep_back_reduction_of(input.value);
    }
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      leave_loops(op);
      if (is_emitted(op) || is_kept_back(op)) continue;
      keep_border(op);
      for (const ValueId operand : program_.op_operands(op)) {
        if (value_of_[operand] == kNoId) complete(program_.defining_op(operand));
      }
      emit(op);
    }
    leave_loops(program_.num_ops());
    while (!filling_.empty()) flush(filling_.begin());
    for (const ProgramOutput& output : program_.outputs) {
      result_.add_output(value_of_[output.value], output.name, output.sharding, output.updates);
    }
    return std::move(result_);
  }

 private:
  using Buckets = std::vector<std::vector<OpId>>;

  bool is_kept_back(OpId op) const {
    return program_.kind(op) == OpKind::all_reduce && eligible_(op) &&
           loops_.of_value(program_.op_operands(op)[0]) == loops_.of_op(op);
  }
  bool is_emitted(OpId op) const { return value_of_[program_.result(op)] != kNoId; }

  /// Emits the open buckets if the op begins or ends a loop or a branch, so that no all_reduce is
  /// delayed across this border, and no other op is moved forward across it.
  void keep_border(OpId op) {
    const OpKind kind = program_.kind(op);
    if (!begins_range(kind) && !leaves_loop(kind)) return;
    for (auto bucket = filling_.begin(); bucket != filling_.end();) {
      if (begins_range(kind) || loops_.of_op(bucket->front()) == loops_.of_op(op)) {
        flush(bucket);
        bucket = filling_.begin();
      } else {
        ++bucket;
      }
    }
  }

  /// For each loop that has ended before this op, lets the all_reduces that read the loop's results
  /// join buckets. They can't join earlier, because an inner loop that follows such a result would
  /// make keep_border() emit their bucket inside the outer loop.
  void leave_loops(OpId op) {
    std::erase_if(left_, [&](ValueId value) {
      if (loops_[loops_.of_op(program_.defining_op(value))].end > op) return false;
      keep_back_reduction_of(value);
      return true;
    });
  }

  bool may_join(OpId a, OpId b) const {
    return are_alike(program_, a, b) && loops_.of_op(a) == loops_.of_op(b);
  }

  Buckets::iterator filling_with(OpId op) {
    return std::ranges::find_if(filling_,
                                [&](const auto& ops) { return may_join(ops.front(), op); });
  }

  void keep_back_reduction_of(ValueId value) {
    const OpId op = reduction_of_[value];
    if (op == kNoId) return;
    auto bucket = filling_with(op);
    if (bucket == filling_.end()) bucket = filling_.insert(bucket, std::vector<OpId>());
    bucket->push_back(op);
    std::int64_t size = 0;
    for (const OpId kept : *bucket) size += bytes(program_, kept);
    if (size >= kBucketBytes) flush(bucket);
  }

  /// Emits the bucket that contains the all_reduce `awaited`, whose result the next op reads. First
  /// fills the bucket with matching all_reduces whose operands need at most kBroughtForwardMax
  /// cheap ops, and moves these ops forward.
  void complete(OpId awaited) {
    for (const OpId op : kept_back_) {
      if (is_emitted(awaited)) return;
      const ValueId operand = program_.op_operands(op)[0];
      if (value_of_[operand] != kNoId || !may_join(awaited, op)) continue;
      int ops_left = kBroughtForwardMax;
      if (is_near(operand, ops_left)) emit_all_before(operand);
    }
    if (!is_emitted(awaited)) flush(filling_with(awaited));
  }

  /// Returns whether at most `ops_left` cheap ops make the value. Other ops, such as those of the
  /// next micro-batch, don't move forward, because their values would occupy memory too early.
  bool is_near(ValueId value, int& ops_left) const {
    if (value_of_[value] != kNoId) return true;
    const OpId op = program_.defining_op(value);
    if (!row(program_.kind(op)).traits->near) return false;
    if (ops_left-- == 0) return false;
    return std::ranges::all_of(program_.op_operands(op),
                               [&](ValueId operand) { return is_near(operand, ops_left); });
  }

  /// Emits the value's op after the ops that it depends on.
  void emit_all_before(ValueId value) {
    const OpId op = program_.defining_op(value);
    if (op == kNoId || is_emitted(op)) return;
    for (const ValueId operand : program_.op_operands(op)) emit_all_before(operand);
    emit(op);
  }

  void flush(Buckets::iterator bucket) {
    WEFT_CHECK(bucket != filling_.end());
    const std::vector<OpId> ops = std::move(*bucket);
    filling_.erase(bucket);
    for (const OpId op : ops) emit(op);
  }

  void emit(OpId op) {
    std::vector<ValueId> operands;
    for (const ValueId operand : program_.op_operands(op)) operands.push_back(value_of_[operand]);
    const ValueId value = program_.result(op);
    value_of_[value] = result_.add_op(program_.kind(op), operands, program_.op_attrs(op),
                                      program_.type(value), program_.op_locs[op]);
    if (leaves_loop(program_.kind(op))) {
      left_.push_back(value);
    } else if (!is_kept_back(op)) {
      keep_back_reduction_of(value);
    }
  }

  const Program& program_;
  const Eligible eligible_;
  const Loops loops_;
  Program result_;
  std::vector<ValueId> value_of_;   // indexed by old value
  std::vector<OpId> reduction_of_;  // indexed by old value: the delayed all_reduce that reads it
  std::vector<OpId> kept_back_;
  Buckets filling_;
  std::vector<ValueId> left_;  // results of loops that haven't ended yet
};

}  // namespace

std::vector<Bucket> buckets(const Program& chip_program) {
  const Eligible eligible(chip_program);
  std::vector<Bucket> buckets;
  std::int64_t size = kBucketBytes;  // size of the last bucket; it is full from kBucketBytes on
  for (OpId op = 0; op < chip_program.num_ops(); ++op) {
    if (chip_program.kind(op) != OpKind::all_reduce) continue;
    const bool follows = !buckets.empty() && buckets.back().first + buckets.back().count == op;
    if (follows && size < kBucketBytes && eligible(op) &&
        are_alike(chip_program, buckets.back().first, op)) {
      ++buckets.back().count;
      size += bytes(chip_program, op);
    } else {
      buckets.push_back({op, 1});
      size = eligible(op) ? bytes(chip_program, op) : kBucketBytes;
    }
  }
  return buckets;
}

Program fill_buckets(const Program& chip_program) { return Filling(chip_program).run(); }

}  // namespace weft
