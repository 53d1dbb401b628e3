#include <algorithm>
#include <tuple>

#include "spmd/plan/lifetime.hpp"

namespace weft {
namespace {

/// Assigns offsets to the values of one region of memory.
class Placement {
 public:
  Placement(Plan& plan, Place region)
      : plan_(plan), lifetimes_(lifetimes_of(plan.program, plan.steps, plan.slots)) {
    const Program& program = plan.program;
    for (ValueId value = 0; value < program.num_values(); ++value) {
      bytes_.push_back(slot_bytes(program.type(value)));
    }
    std::vector<bool> in_bucket(program.num_values(), false);
    const auto add_range = [&](const PlanStep& bucket, auto value_of) {
      begin_block();
      for (OpId op = bucket.first; op < bucket.end(); ++op) {
        const ValueId value = placed_as(program, value_of(op));
        add(value);
        in_bucket[value] = true;
      }
    };
    for (const PlanStep& step : plan.steps) {
      if (step.kind != StepKind::collective || step.count == 1 || region != Place::temp) continue;
      add_range(step, [&](OpId op) { return program.op_operands(op)[0]; });
      add_range(step, [&](OpId op) { return program.result(op); });
    }
    for (ValueId value = 0; value < program.num_values(); ++value) {
      if (plan.slots[value].place != region || in_bucket[value]) continue;
      if (placed_as(program, value) != value) continue;
      begin_block();
      add(value);
    }
    std::ranges::sort(blocks_, {},
                      [&](const Block& block) { return std::tuple(~block.bytes, front(block)); });
  }

  /// Places blocks greedily by size, like TFLite's planner. While the region is over 3 % above
  /// bound(), places the block with the highest end first and tries again, up to 15 times. Keeps
  /// the best attempt and returns its size.
  std::uint64_t place() {
    constexpr int kAttempts = 16;
    const std::uint64_t enough = bound() + bound() / 32;
    Attempt next = attempt();
    Attempt best = next;
    for (int i = 1; i < kAttempts && best.size > enough; ++i) {
      const auto highest = blocks_.begin() + static_cast<std::ptrdiff_t>(next.highest);
      std::rotate(blocks_.begin(), highest, highest + 1);
      next = attempt();
      if (next.size < best.size) best = next;
    }
    for (std::size_t i = 0; i < values_.size(); ++i) {
      plan_.slots[values_[i]].offset = best.offsets[i];
    }
    for (ValueId value = 0; value < plan_.slots.size(); ++value) {
      plan_.slots[value] = plan_.slots[placed_as(plan_.program, value)];
    }
    return best.size;
  }

  /// Returns the largest number of bytes that are live at the same op, a lower bound of the
  /// region's size.
  std::uint64_t bound() const {
    std::vector<std::uint64_t> change(plan_.program.num_ops() + 1, 0);  // by op, modulo 2^64
    for (const Block& block : blocks_) {
      change[lifetimes_[front(block)].first] += block.bytes;
      change[lifetimes_[front(block)].last + 1] -= block.bytes;
    }
    std::uint64_t live = 0;
    std::uint64_t most = 0;
    for (const std::uint64_t by : change) most = std::max(most, live += by);
    return most;
  }

 private:
  /// Adjacent values with one lifetime: a bucket's operands or results, or a single value.
  struct Block {
    std::size_t begin = 0, end = 0;  // indices into values_
    std::uint64_t bytes = 0;
  };

  /// The bytes that a placed block occupies; `value` is the block's first value.
  struct Range {
    std::uint64_t begin = 0, end = 0;
    ValueId value = kNoId;
  };

  struct Attempt {
    std::uint64_t size = 0;              ///< the size of the region
    std::size_t highest = 0;             ///< the block with the highest end
    std::vector<std::uint64_t> offsets;  ///< indexed by index in values_
  };

  /// Places each block, in the order of blocks_, at the lowest offset that earlier blocks leave
  /// free.
  Attempt attempt() const {
    Attempt result{.offsets = std::vector<std::uint64_t>(values_.size())};
    std::vector<Range> placed;  // sorted by offset
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const Block& block = blocks_[b];
      std::uint64_t offset = first_fit(placed, block);
      const Range range{offset, offset + block.bytes, front(block)};
      placed.insert(std::ranges::upper_bound(placed, range.begin, {}, &Range::begin), range);
      if (range.end > result.size) {
        result.size = range.end;
        result.highest = b;
      }
      for (std::size_t i = block.begin; i < block.end; ++i) {
        result.offsets[i] = offset;
        offset += bytes_[values_[i]];
      }
    }
    return result;
  }

  void begin_block() { blocks_.push_back({values_.size(), values_.size(), 0}); }
  void add(ValueId value) {
    values_.push_back(value);
    ++blocks_.back().end;
    blocks_.back().bytes += bytes_[value];
  }
  ValueId front(const Block& block) const { return values_[block.begin]; }

  /// Returns the lowest offset at which the block shares bytes only with placed blocks that may
  /// share them.
  std::uint64_t first_fit(const std::vector<Range>& placed, const Block& block) const {
    std::uint64_t offset = 0;
    for (const Range& other : placed) {
      if (other.begin >= offset + block.bytes) break;
      if (other.end > offset &&
          exclude_each_other(plan_.program, plan_.slots, lifetimes_, front(block), other.value)) {
        offset = other.end;
      }
    }
    return offset;
  }

  Plan& plan_;
  std::vector<Lifetime> lifetimes_;
  std::vector<std::uint64_t> bytes_;  // indexed by value
  std::vector<ValueId> values_;
  std::vector<Block> blocks_;
};

}  // namespace

void place_values(Plan& plan) {
  Placement temporaries(plan, Place::temp);
  plan.temp_bytes = temporaries.place();
  plan.temp_bytes_bound = temporaries.bound();
  plan.shared_bytes = Placement(plan, Place::shared).place();
}

}  // namespace weft
