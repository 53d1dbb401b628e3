#include "spmd/plan/schedule.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "spmd/control/loops.hpp"
#include "spmd/fusion/fuse.hpp"
#include "spmd/fusion/spread.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/bucket.hpp"
#include "spmd/plan/donate.hpp"
#include "spmd/plan/shared.hpp"

namespace weft {
namespace {

class Scheduling {
 public:
  explicit Scheduling(Plan& plan)
      : plan_(plan),
        program_(plan.program),
        tiled_(places_of_tiles(plan)),
        tile_buffers_(plan.program, tiled_) {}

  void run(const Mesh& mesh, const Target& target, std::span<const OpId> borders) {
    const std::vector<Bucket> all_reduces = buckets(program_);
    const std::vector<FusedLoop> loops = fused_loops(program_, target, borders);
    const Loops ranges(program_);
    auto bucket = all_reduces.begin();
    auto loop = loops.begin();
    OpId op = 0;
    std::vector<std::uint32_t> open;  // the loops that contain the op
    while (op < program_.num_ops()) {
      const OpKind kind = program_.kind(op);
      if (kind == OpKind::loop) {
        open.push_back(ranges.at(op));
        const LoopRange& range = ranges[open.back()];
        const auto count = static_cast<std::uint32_t>(1 + range.carries.size());
        plan_.steps.push_back({StepKind::begin, op, count});
      } else if (kind == OpKind::cond || kind == OpKind::otherwise) {
        plan_.steps.push_back({StepKind::branch, op, 1});
      } else if (kind == OpKind::test) {
        plan_.steps.push_back({StepKind::test, op, 1});
      } else if (kind == OpKind::all_reduce) {
        plan_.steps.push_back({StepKind::collective, bucket->first, bucket->count});
        ++bucket;
      } else if (is_collective(kind)) {
        plan_.steps.push_back({StepKind::collective, op, 1});
      } else if (is_elementwise(kind) && !loops.empty()) {
        add_loop(*loop);
        op = loop->first + loop->count;
        ++loop;
        continue;
      } else if (!tiled_[program_.result(op)]) {
        if (kind == OpKind::merge) join_before(ranges[ranges.of_op(op)], op);
        plan_.steps.push_back({StepKind::compute, op, 1});
      } else {
        ++op;  // each loop that reads this fill or spread makes it itself
        continue;
      }
      op = plan_.steps.back().end();
      while (!open.empty() && ranges[open.back()].end == op) {
        plan_.steps.push_back({StepKind::repeat, ranges[open.back()].begin, 0});
        open.pop_back();
      }
    }
    if (needs_final_barrier(plan_, mesh)) plan_.steps.push_back({StepKind::barrier, 0, 0});
    place_update_wait();
  }

 private:
  /// A step that writes an output which is the next version of a parameter or of optimizer state.
  struct Update {
    std::size_t step = 0;
    std::uint32_t output = 0;
    std::int64_t bytes = 0;
  };

  void join_before(const LoopRange& second, OpId merge) {
    if (second.nexts.front() == merge) plan_.steps.push_back({StepKind::join, second.begin, 0});
  }

  static std::vector<bool> places_of_tiles(const Plan& plan) {
    std::vector<bool> tiled;
    for (const Slot& slot : plan.slots) tiled.push_back(slot.place == Place::tile);
    return tiled;
  }

  /// Adds a loop. Stored fills and spreads among the loop's ops become compute steps before the
  /// loop.
  void add_loop(const FusedLoop& fused) {
    for (OpId op = fused.first; op < fused.first + fused.count; ++op) {
      if (is_made_by_loops(program_, op) && !tiled_[program_.result(op)]) {
        plan_.steps.push_back({StepKind::compute, op, 1});
      }
    }
    const auto step = static_cast<std::uint32_t>(plan_.steps.size());
    plan_.steps.push_back({StepKind::loop, fused.first, fused.count});
    for (const auto& [value, buffer] : tile_buffers_.of(fused)) {
      plan_.tiles.push_back({step, value, buffer});
    }
  }

  /// Returns all updates of the plan, in the order of writing.
  std::vector<Update> updates() const {
    std::vector<Update> updates;
    for (std::size_t step = 0; step < plan_.steps.size(); ++step) {
      for (const std::uint32_t output : written_outputs(plan_, plan_.steps[step])) {
        const ProgramOutput& written = program_.outputs[output];
        if (written.updates < 0) continue;
        updates.push_back({step, output, program_.type(written.value).bytes()});
      }
    }
    return updates;
  }

  void place_update_wait() {
    const std::vector<Update> updates = this->updates();
    if (updates.empty()) return;
    std::size_t last_meeting = 0;
    for (std::size_t step = 0; step < plan_.steps.size(); ++step) {
      const StepKind kind = plan_.steps[step].kind;
      if (kind == StepKind::collective || kind == StepKind::barrier) last_meeting = step;
    }
    std::size_t wait = plan_.steps.size();
    std::int64_t held_bytes = 0;
    for (const Update& update : updates) {
      if (update.step >= last_meeting || held_bytes + update.bytes > kHeldBytesMax) {
        wait = update.step;
        break;
      }
      held_bytes += static_cast<std::int64_t>(
          slot_bytes(program_.type(program_.outputs[update.output].value)));
    }
    for (const Update& update : updates) {
      if (update.step < wait) plan_.held.push_back(update.output);
    }
    plan_.steps.insert(plan_.steps.begin() + static_cast<std::ptrdiff_t>(wait),
                       {StepKind::update_wait, 0, 0});
    for (TileBuffer& tile : plan_.tiles) tile.step += tile.step >= wait ? 1 : 0;
  }

  Plan& plan_;
  const Program& program_;
  std::vector<bool> tiled_;  // indexed by value
  TileBuffers tile_buffers_;
};

}  // namespace

std::string_view to_string(StepKind kind) noexcept {
  switch (kind) {
    case StepKind::compute: return "compute";
    case StepKind::loop: return "loop";
    case StepKind::collective: return "collective";
    case StepKind::barrier: return "barrier";
    case StepKind::update_wait: return "update_wait";
    case StepKind::begin: return "begin";
    case StepKind::repeat: return "repeat";
    case StepKind::test: return "test";
    case StepKind::branch: return "branch";
    case StepKind::join: return "join";
    case StepKind::wait: return "wait";
  }
  return "unknown";
}

std::vector<std::uint32_t> written_outputs(const Plan& plan, const PlanStep& step) {
  const Program& program = plan.program;
  std::vector<std::uint32_t> outputs;
  for (OpId op = step.first; op < step.end(); ++op) {
    if (step.kind == StepKind::loop && !is_elementwise(program.kind(op))) continue;
    const Slot& slot = plan.slots[program.result(op)];
    if (slot.place == Place::output) outputs.push_back(static_cast<std::uint32_t>(slot.offset));
  }
  return outputs;
}

std::span<const TileBuffer> tile_buffers_of(const Plan& plan, std::size_t step) {
  const auto tiles = std::ranges::equal_range(plan.tiles, step, {}, &TileBuffer::step);
  return {tiles.begin(), tiles.end()};
}

std::string steps_text(const Plan& plan) {
  const Program& program = plan.program;
  std::string text;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    text += fmt::format("{}: {}", i, to_string(step.kind));
    switch (step.kind) {
      case StepKind::repeat:
      case StepKind::test:
      case StepKind::branch:
      case StepKind::join:
      case StepKind::wait:
      case StepKind::compute: text += fmt::format(" {}", step.first); break;
      case StepKind::begin:
      case StepKind::collective:
      case StepKind::loop: text += fmt::format(" {}..{}", step.first, step.end() - 1); break;
      case StepKind::barrier:
      case StepKind::update_wait: break;
    }
    if (step.count > 0) text += fmt::format(" {}", to_string(program.kind(step.first)));
    for (const TileBuffer& tile : tile_buffers_of(plan, i)) {
      text += fmt::format(" %{}:{}", tile.value, tile.buffer);
    }
    text += '\n';
  }
  if (!plan.held.empty())
    text += fmt::format("held until the update_wait: outputs {}\n", fmt::join(plan.held, ", "));
  return text;
}

void schedule(Plan& plan, const Mesh& mesh, const Target& target, std::span<const OpId> borders) {
  Scheduling(plan).run(mesh, target, borders);
  plan.donated = donated_updates(plan.program, plan.steps);
}

}  // namespace weft
