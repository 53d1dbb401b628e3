#include <algorithm>

#include "spmd/control/loops.hpp"
#include "spmd/fusion/spread.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/overlap.hpp"
#include "spmd/plan/schedule.hpp"
#include "spmd/plan/shared.hpp"

namespace weft {
namespace {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(Errc::corrupt, "plan: {}", fmt::format(format, std::forward<Args>(args)...));
}

/// Checks that the steps, one after another, run all ops of the program.
class StepsCheck {
 public:
  explicit StepsCheck(const Plan& plan)
      : plan_(plan),
        program_(plan.program),
        loop_of_(program_.num_ops(), kNoId),
        is_made_(program_.num_ops(), false),
        buffer_of_(program_.num_values(), kNoId),
        last_read_(program_.num_values(), 0) {}

  void run() {
    for (std::uint32_t i = 0; i < plan_.steps.size(); ++i) {
      const PlanStep& step = plan_.steps[i];
      if (step.kind == StepKind::wait) {
        check_wait(i, step);
        continue;
      }
      if (step.kind == StepKind::repeat || step.kind == StepKind::join) {
        check_end(i, step);
        continue;
      }
      const bool meets = step.kind == StepKind::barrier || step.kind == StepKind::update_wait;
      if (meets != (step.count == 0) || step.count > program_.num_ops() ||
          step.first > program_.num_ops() - step.count) {
        refuse("step {} ({}) has {} ops from op {}, but the program has {} ops", i,
               to_string(step.kind), step.count, step.first, program_.num_ops());
      }
      if (meets && !open_.empty()) refuse("step {} waits in a loop or a branch", i);
      if (meets) continue;
      skip_tiled_fills();
      const bool is_early_fill = step.kind == StepKind::compute && step.first > next_;
      const bool is_loop_of_early =
          step.kind == StepKind::loop && !early_.empty() && early_.back() < step.end();
      if (!early_.empty() && !is_early_fill && !is_loop_of_early) {
        refuse("fill {} is made before step {}, which isn't the loop that contains it",
               early_.back(), i);
      }
      switch (step.kind) {
        case StepKind::compute: check_compute(i, step); break;
        case StepKind::loop: check_loop(i, step); break;
        case StepKind::begin: check_begin(i, step); break;
        case StepKind::test: check_test(i, step); break;
        case StepKind::branch: check_branch(i, step); break;
        default: check_collective(i, step); break;
      }
    }
    skip_tiled_fills();
    if (!early_.empty()) refuse("no loop reads fill {}", early_.back());
    if (next_ != program_.num_ops()) refuse("no step runs op {}", next_);
    if (!open_.empty()) refuse("no step ends the loop or branch at op {}", begin_of_open());
    check_tiles();
  }

 private:
  bool is_tiled(ValueId value) const { return plan_.slots[value].place == Place::tile; }
  bool is_tiled_fill(OpId op) const {
    return is_made_by_loops(program_, op) && is_tiled(program_.result(op));
  }
  /// Returns whether each loop that reads the tiled value computes it itself.
  bool is_made_where_read(ValueId value) const {
    return is_made_by_loops(program_, program_.defining_op(value)) ||
           is_added_by_loops(program_, plan_.slots, value);
  }
  /// Skips the tiled fills that come next, because loops make tiled fills themselves.
  void skip_tiled_fills() {
    while (next_ < program_.num_ops() && is_tiled_fill(next_)) ++next_;
  }

  void make(std::uint32_t step, OpId op) {
    for (const ValueId operand : program_.op_operands(op)) require_made(step, op, operand);
    is_made_[op] = true;
  }
  void require_made(std::uint32_t step, OpId op, ValueId value) const {
    const OpId maker = program_.defining_op(value);
    if (maker == kNoId || is_made_[maker]) return;
    if (!is_tiled_fill(maker))
      refuse("step {}: op {} reads %{}, which isn't computed yet", step, op, value);
    require_scalars_made(step, maker);
  }
  /// Checks the scalar operands of a loop's fill. They mustn't be tiled fills, because a loop makes
  /// its fills in no fixed order.
  void require_scalars_made(std::uint32_t step, OpId fill) const {
    for (const ValueId scalar : program_.op_operands(fill)) {
      if (is_tiled(scalar)) {
        refuse("step {}: fill {} uses %{}, which has no place in memory", step, fill, scalar);
      }
      require_made(step, fill, scalar);
    }
  }
  void require_next(std::uint32_t i, const PlanStep& step) const {
    if (step.first != next_) {
      refuse("step {} ({}) begins with op {}, but op {} is next", i, to_string(step.kind),
             step.first, next_);
    }
  }

  /// Checks a `begin` step: the loop's op and its carries, which run once. The loop's last ops must
  /// be its nexts.
  void check_begin(std::uint32_t i, const PlanStep& step) {
    require_next(i, step);
    if (program_.kind(step.first) != OpKind::loop) {
      refuse("step {} begins op {}, which isn't a loop", i, step.first);
    }
    const LoopRange& range = loops_[loops_.at(step.first)];
    if (step.count != 1 + range.carries.size()) {
      refuse("step {} begins a loop of {} carries with {} ops", i, range.carries.size(),
             step.count);
    }
    for (OpId op = step.first; op < step.end(); ++op) {
      if (op > step.first && program_.kind(op) != OpKind::carry) {
        refuse("step {} begins a loop with op {}, which isn't a carry of the loop", i, op);
      }
      make(i, op);
    }
    for (std::size_t n = 0; n < range.nexts.size(); ++n) {
      if (range.nexts[n] + range.nexts.size() != range.end + n) {
        refuse("the nexts of the loop at op {} aren't its last ops", range.begin);
      }
      // A `next` overwrites its carry, so the carry can't be the next value of another carry.
      const auto operands = program_.op_operands(range.nexts[n]);
      const OpId maker = program_.defining_op(operands[2]);
      if (operands[2] != operands[1] && std::ranges::count(range.carries, maker) > 0) {
        refuse("op {} reads carry %{}, which another next may have overwritten", range.nexts[n],
               operands[2]);
      }
    }
    open_.push_back(loops_.at(step.first));
    next_ = step.end();
  }

  OpId begin_of_open() const { return loops_[open_.back()].begin; }

  void check_one(std::uint32_t i, const PlanStep& step) {
    require_next(i, step);
    if (step.count != 1)
      refuse("step {} ({}) has {} ops; expected 1", i, to_string(step.kind), step.count);
    make(i, step.first);
    ++next_;
  }

  void check_test(std::uint32_t i, const PlanStep& step) {
    check_one(i, step);
    const bool ends_open = !open_.empty() && loops_[open_.back()].test == step.first;
    if (!ends_open)
      refuse("step {} tests with op {}, which isn't the test of its loop", i, step.first);
  }

  /// Checks that a second branch follows the first directly, and that its merges are at its end.
  void check_branch(std::uint32_t i, const PlanStep& step) {
    check_one(i, step);
    const OpKind kind = program_.kind(step.first);
    if (kind != OpKind::cond && kind != OpKind::otherwise) {
      refuse("step {} begins a branch with op {} ({})", i, step.first, to_string(kind));
    }
    const std::uint32_t branch = loops_.at(step.first);
    if (kind == OpKind::otherwise) {
      if (open_.empty() || open_.back() != loops_[branch].other) {
        refuse("step {} begins the second branch at op {} outside of its cond", i, step.first);
      }
      open_.pop_back();
    }
    open_.push_back(branch);
  }

  /// Checks a wait, except for its relation to its collective, which verify_waits() checks.
  void check_wait(std::uint32_t i, const PlanStep& step) const {
    if (step.count != 0 || step.first >= program_.num_ops()) {
      refuse("step {} waits for {} ops from op {}, but the program has {} ops; expected count 0", i,
             step.count, step.first, program_.num_ops());
    }
    if (!open_.empty()) refuse("step {} waits in a loop or a branch", i);
  }

  /// Checks a repeat or a join.
  void check_end(std::uint32_t i, const PlanStep& step) {
    if (step.kind == StepKind::join) skip_tiled_fills();
    const bool is_join = step.kind == StepKind::join;
    if (open_.empty() || begin_of_open() != step.first || step.count != 0 ||
        (program_.kind(step.first) == OpKind::otherwise) != is_join ||
        program_.kind(step.first) == OpKind::cond ||
        (is_join ? loops_[open_.back()].body_end() : loops_[open_.back()].end) != next_) {
      refuse("step {} {} the {} at op {} before op {}", i, is_join ? "ends" : "repeats",
             is_join ? "branch" : "loop", step.first, next_);
    }
    open_.pop_back();
  }

  void check_in_loop(std::uint32_t i, OpId op) const {
    const OpKind kind = program_.kind(op);
    std::uint32_t range = loops_.of_op(op);
    if (kind == OpKind::merge) range = loops_[range].outer;
    if (range != (open_.empty() ? kNoId : open_.back())) {
      refuse("step {}: op {} runs outside of its loop or branch", i, op);
    }
    if (begins_range(kind) || kind == OpKind::carry || kind == OpKind::test) {
      refuse("step {} runs op {} ({}), which begins or ends a loop or a branch", i, op,
             to_string(kind));
    }
  }

  /// Checks a compute step. A stored fill among the ops of a loop runs directly before the loop. It
  /// can't run earlier, because its memory may hold another value until then.
  void check_compute(std::uint32_t i, const PlanStep& step) {
    const OpId op = step.first;
    if (step.count != 1 || is_collective(program_.kind(op))) {
      refuse("step {} (compute) has ops {}..{}; expected one op that isn't a collective", i, op,
             step.end() - 1);
    }
    if (is_made_[op]) refuse("step {} runs op {} again", i, op);
    check_in_loop(i, op);
    if (is_tiled(program_.result(op))) {
      refuse("%{} has no place in memory, but step {} computes it whole", program_.result(op), i);
    }
    if (!is_made_by_loops(program_, op) || op == next_) {
      require_next(i, step);
      ++next_;
    } else {
      if (!early_.empty() && op < early_.back()) refuse("step {}: fill {} is too late", i, op);
      early_.push_back(op);
    }
    make(i, op);
  }

  void check_loop(std::uint32_t i, const PlanStep& step) {
    require_next(i, step);
    check_in_loop(i, step.end() - 1);
    const auto elements = [&](OpId op) {
      return program_.type(program_.result(op)).num_elements();
    };
    // Stored fills are made by steps before the loop.
    for (OpId op = step.first; op < step.end(); ++op) {
      if (!is_made_by_loops(program_, op)) continue;
      if (!is_tiled(program_.result(op)) && !is_made_[op]) refuse("no step makes fill {}", op);
      require_scalars_made(i, op);
    }
    for (OpId op = step.first; op < step.end(); ++op) {
      if (is_elementwise(program_.kind(op)) && elements(op) == elements(step.first)) {
        loop_of_[op] = i;
        make(i, op);
      } else if (op == step.first || !is_made_by_loops(program_, op)) {
        refuse("step {} (loop): op {} ({}) isn't an elementwise op of {} elements", i, op,
               to_string(program_.kind(op)), elements(step.first));
      }
    }
    check_tile_buffers(i, step);
    early_.clear();
    next_ = step.end();
  }

  void check_collective(std::uint32_t i, const PlanStep& step) {
    require_next(i, step);
    check_in_loop(i, step.end() - 1);
    const bool is_bucket = program_.kind(step.first) == OpKind::all_reduce;
    for (OpId op = step.first; op < step.end(); ++op) {
      if (!is_collective(program_.kind(op)) || (op > step.first && !is_bucket) ||
          program_.kind(op) != program_.kind(step.first) ||
          !std::ranges::equal(program_.op_attrs(op), program_.op_attrs(step.first)) ||
          program_.type(program_.result(op)).dtype !=
              program_.type(program_.result(step.first)).dtype) {
        refuse("step {} (collective): op {} ({}) can't be combined with op {}", i, op,
               to_string(program_.kind(op)), step.first);
      }
      // The collective reads all operands before it writes any result.
      for (const ValueId operand : program_.op_operands(op)) require_made(i, op, operand);
    }
    for (OpId op = step.first; op < step.end(); ++op) is_made_[op] = true;
    next_ = step.end();
  }

  /// Checks that only the loop that makes a tiled value reads it. Values that each reading loop
  /// makes itself are exempt.
  void check_tiles() const {
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      const ValueId result = program_.result(op);
      if (is_tiled(result) && loop_of_[op] == kNoId && !is_made_where_read(result)) {
        refuse("%{} has no place in memory, and no loop computes it", result);
      }
      for (const ValueId value : program_.op_operands(op)) {
        if (!is_tiled(value)) continue;
        const OpId maker = program_.defining_op(value);
        if (loop_of_[op] == kNoId && may_read_in_place(program_, op, maker)) continue;
        if (loop_of_[op] == kNoId ||
            (!is_made_where_read(value) && loop_of_[op] != loop_of_[maker])) {
          refuse("%{} has no place in memory, but op {} reads it outside of its loop", value, op);
        }
      }
    }
  }

  void check_tile_buffers(std::uint32_t i, const PlanStep& loop) {
    const std::span<const TileBuffer> tiles = tile_buffers_of(plan_, i);
    for (const TileBuffer& tile : tiles) {
      if (!is_tiled(tile.value) || tile.buffer >= tiles.size() || buffer_of_[tile.value] != kNoId) {
        refuse("step {}: %{} has a wrong tile buffer, {} of {}", i, tile.value, tile.buffer,
               tiles.size());
      }
      buffer_of_[tile.value] = tile.buffer;
      last_read_[tile.value] = kUnused;
    }
    // A value occupies its buffer from its op to the last op that reads it. A fill always occupies
    // its buffer.
    for (OpId op = loop.first; op < loop.end(); ++op) {
      if (loop_of_[op] != i) continue;
      for (const ValueId value : program_.op_operands(op)) {
        if (!is_tiled(value)) continue;
        last_read_[value] = is_made_where_read(value) ? kAlways : op;
      }
    }
    for (OpId op = loop.first; op < loop.end(); ++op) {
      OpId& read = last_read_[program_.result(op)];
      if (loop_of_[op] == i && read == kUnused) read = op;
    }
    for (const TileBuffer& tile : tiles) {
      if (last_read_[tile.value] == kUnused) {
        refuse("step {}: %{} has a tile buffer, but isn't computed in this loop", i, tile.value);
      }
    }
    std::vector<ValueId> occupants(tiles.size(), kNoId);  // indexed by buffer: the value in it
    const auto take = [&](ValueId value, OpId from) {
      if (buffer_of_[value] == kNoId) refuse("step {}: %{} has no tile buffer", i, value);
      ValueId& occupant = occupants[buffer_of_[value]];
      if (occupant != kNoId && last_read_[occupant] >= from) {
        refuse("step {}: %{} and %{} are in one tile buffer at the same time", i, occupant, value);
      }
      occupant = value;
    };
    for (const TileBuffer& tile : tiles) {
      if (last_read_[tile.value] == kAlways) take(tile.value, 0);  // fills stay for all tiles
    }
    for (OpId op = loop.first; op < loop.end(); ++op) {
      if (loop_of_[op] != i) continue;
      for (const ValueId value : program_.op_operands(op)) {
        if (is_tiled(value) && buffer_of_[value] == kNoId) {
          refuse("step {}: %{} has no tile buffer", i, value);
        }
      }
      if (is_tiled(program_.result(op))) take(program_.result(op), op);
    }
    for (const TileBuffer& tile : tiles) buffer_of_[tile.value] = kNoId;
  }

  // Special values of last_read_.
  static constexpr OpId kUnused = kNoId;
  static constexpr OpId kAlways = kNoId - 1;

  const Plan& plan_;
  const Program& program_;
  std::vector<std::uint32_t> loop_of_;    // indexed by op: the loop step that runs it
  std::vector<bool> is_made_;             // indexed by op
  std::vector<std::uint32_t> buffer_of_;  // by value: buffer in the checked loop, else kNoId
  std::vector<OpId> last_read_;           // by value: last reader in the checked loop
  const Loops loops_{program_};
  std::vector<std::uint32_t> open_;  // loops and branches that have begun but not ended
  std::vector<OpId> early_;          // stored fills made for the next loop
  OpId next_ = 0;                    // the first op that no step has run
};

}  // namespace

void verify_steps(const Plan& plan, const Mesh& mesh) {
  if (!std::ranges::is_sorted(plan.tiles, {}, &TileBuffer::step)) {
    refuse("tile buffers are not in the order of their steps");
  }
  StepsCheck(plan).run();
  for (const TileBuffer& tile : plan.tiles) {
    if (tile.step >= plan.steps.size() || plan.steps[tile.step].kind != StepKind::loop) {
      refuse("step {} has tile buffers, but isn't a loop", tile.step);
    }
  }
  verify_waits(plan, mesh);
  verify_updates(plan, mesh);
}

}  // namespace weft
