#include "tests/support/reference_engine.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "chips/engine/chip_collectives.hpp"
#include "chips/engine/plan_calls.hpp"
#include "chips/engine/state_hash.hpp"
#include "spmd/control/loops.hpp"
#include "spmd/fusion/spread.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/plan/shared.hpp"
#include "spmd/program/element.hpp"
#include "transport/collectives/communicator.hpp"
#include "transport/reduce/reduce.hpp"
#include "transport/state/commits.hpp"

namespace weft::testing {
namespace {

/// A plan and the prepared calls of its collectives, in the order of its steps.
struct ReferencePlan final : LoadedPlan {
  Plan plan;
  std::uint64_t shared_begin = 0;
  std::vector<PreparedCall> calls;
  bool checks = false;
};

/// Runs the collectives of custom bodies. The operands are in the chip's own memory, so each call
/// copies them to the arena and back.
class ReferenceCollectives final : public ChipCollectives {
 public:
  ReferenceCollectives(const EngineSetup& setup, Communicator& communicator,
                       std::vector<std::byte>& own)
      : ChipCollectives(setup.mesh, setup.position, setup.local_index),
        memory_(setup.memory),
        arena_(chip_on_host(setup.mesh, setup.position)),
        communicator_(communicator),
        own_(own) {}

  Chip& chip_for(std::uint32_t body) {
    body_ = body;
    return chip();
  }
  std::byte* address(std::uint64_t offset) override { return own_.data() + offset; }

  void carry_out(const ChipCall& call) override {
    const auto part = static_cast<std::size_t>(call.count * byte_size(call.dtype));
    const std::size_t source_bytes = part * static_cast<std::size_t>(call.parts_in_source);
    const std::size_t result_bytes = part * static_cast<std::size_t>(call.parts_in_destination);
    const std::uint64_t from = kArenaTempOffset;
    const std::uint64_t behind = (source_bytes / kOffsetAlignment + 1) * kOffsetAlignment;
    const std::uint64_t to = call.is_in_place() ? from : from + behind;
    memory_.reserve(arena_, from, behind + result_bytes);
    std::byte* arena = memory_.arena(arena_);
    std::copy_n(call.source, source_bytes, arena + from);
    CollectiveCall in_arena = call.in_arena(from, to);
    call.set_count(in_arena, call.count);
    in_arena.tag = body_ + 1;
    const std::string site = call.site();
    in_arena.name = site;
    communicator_.run(call_.emplace(communicator_.prepare(in_arena)));
    std::copy_n(arena + to, result_bytes, call.destination);
  }

 private:
  JobMemory& memory_;
  const int arena_;
  Communicator& communicator_;
  std::vector<std::byte>& own_;
  std::uint32_t body_ = 0;
  std::optional<PreparedCall> call_;  // a call that failed never ends, so it must stay valid
};

class ReferenceEngine final : public Engine {
 public:
  ReferenceEngine(EngineSetup setup, const Target& target)
      : target_(target),
        memory_(setup.memory),
        mesh_(setup.mesh),
        position_(setup.position),
        local_index_(setup.local_index),
        engines_(setup.engines),
        arena_(chip_on_host(setup.mesh, setup.position)),
        board_(setup.board),
        communicator_(setup.memory, setup.mesh, setup.position, setup.board, setup.policy,
                      std::move(setup.network)),
        commits_(setup.memory, setup.mesh, setup.position, setup.board, setup.policy),
        collectives_(setup, communicator_, own_) {}

  int local_index() const override { return local_index_; }
  void settle() noexcept override {}

  void reserve(std::uint64_t offset, std::size_t bytes) override {
    if (offset + bytes > memory_.arena_capacity()) {
      fail(Errc::no_space, "{} bytes at {} of {}", bytes, offset, memory_.arena_capacity());
    }
    if (own_.size() < offset + bytes) own_.resize(offset + bytes);
  }
  void upload(std::uint64_t offset, std::size_t bytes,
              const std::function<void(std::byte*)>& fill) override {
    std::vector<std::byte> staging(bytes);
    fill(staging.data());
    std::memcpy(own_.data() + offset, staging.data(), bytes);
  }
  void copy_from(int position, std::uint64_t from, std::uint64_t to, std::size_t bytes) override {
    engines_[static_cast<std::size_t>(position)]->download(from, {own_.data() + to, bytes});
  }
  void download(std::uint64_t offset, std::span<std::byte> to) override {
    std::memcpy(to.data(), own_.data() + offset, to.size());
  }

  std::shared_ptr<const LoadedPlan> load(const Plan& plan, bool checks) override {
    verify(plan, mesh_on(plan, mesh_));
    require_own_plan(plan);
    const std::size_t room = memory_.buffers_offset() - kArenaTempOffset;
    if (plan.temp_bytes + plan.shared_bytes > room) {
      fail(Errc::no_space, "the plan has {} bytes of temporaries, there is room for {}",
           plan.temp_bytes + plan.shared_bytes, room);
    }
    auto loaded = std::make_shared<ReferencePlan>();
    loaded->plan = plan;
    loaded->checks = checks;
    loaded->shared_begin = memory_.buffers_offset() - plan.shared_bytes;
    memory_.reserve(arena_, kArenaTempOffset, plan.temp_bytes);
    const std::vector<CollectiveSummary> summaries = collectives(plan, mesh_);
    auto summary = summaries.begin();
    for (const PlanStep& step : plan.steps) {
      if (step.kind != StepKind::collective && step.kind != StepKind::barrier) continue;
      CollectiveCall call = collective_call(plan, step, mesh_, position_, loaded->shared_begin);
      if (step.kind == StepKind::collective) call.name = (summary++)->value;
      const ValueId result = plan.program.result(step.first);
      if (step.kind == StepKind::collective && plan.slots[result].place == Place::shared) {
        const ChipPlace place =
            place_in_arena(plan, result, mesh_, position_, loaded->shared_begin);
        memory_.reserve(place.chip, loaded->shared_begin, plan.shared_bytes);
      }
      loaded->calls.push_back(communicator_.prepare(call));
    }
    return loaded;
  }

  void start(std::shared_ptr<const LoadedPlan> loaded, std::uint64_t step,
             const RunBuffers& buffers, RunCommit commit) override {
    auto plan = std::static_pointer_cast<const ReferencePlan>(std::move(loaded));
    const Program& program = plan->plan.program;
    buffers.require(program.inputs.size(), program.outputs.size(), step);
    plan_ = std::move(plan);
    buffers_ = buffers;
    commit_ = commit;
    next_ = 0;
    next_call_ = 0;
    in_collective_ = false;
    begun_.clear();
    values_.assign(program.num_values(), {});
    is_known_.assign(program.num_values(), false);
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      const ValueId value = program.inputs[i].value;
      values_[value] = load_elements(program.type(value), own_.data() + buffers.inputs[i]);
      is_known_[value] = true;
    }
    communicator_.set_step(step);
    board_.step(step);
    commits_.commit(commit.step);
  }

  bool poll() override { return advance(false); }
  void wait() override { advance(true); }

  void call(std::uint64_t step, std::uint32_t program,
            const std::function<void(Chip&)>& body) override {
    communicator_.set_step(step);
    board_.step(step);
    body(collectives_.chip_for(program));
  }
  void add_to(StateHash& hash) override { hash.add(local_index_, own_.data()); }

 private:
  static Elements load_elements(const TensorType& type, const std::byte* bytes) {
    Elements elements;
    for (std::int64_t i = 0; i < type.num_elements(); ++i) {
      elements.push_back(load_element(type.dtype, bytes + i * byte_size(type.dtype)));
    }
    return elements;
  }
  static void store_elements(const TensorType& type, const Elements& elements, std::byte* bytes) {
    for (const double element : elements) {
      store_element(type.dtype, element, bytes);
      bytes += byte_size(type.dtype);
    }
  }

  const Program& program() const { return plan_->plan.program; }

  void require_own_plan(const Plan& plan) const {
    const auto loop = std::ranges::find(plan.steps, StepKind::loop, &PlanStep::kind);
    if (target_.tile_elements == 0 && loop != plan.steps.end()) {
      fail(Errc::invalid_argument, "step {} is a loop, but chips of kind {} have none",
           loop - plan.steps.begin(), target_.name);
    }
    if (target_.shared_bytes_min == Target::kNever && plan.shared_bytes > 0) {
      fail(Errc::invalid_argument,
           "the plan has {} bytes of shared values, but chips of kind {} share no memory",
           plan.shared_bytes, target_.name);
    }
  }

  /// Returns a value. A fill that has no step of its own is computed when it is first read.
  const Elements& value(ValueId value) {
    if (!is_known_[value]) compute(program().defining_op(value));
    return values_[value];
  }

  /// A loop in progress, and the place in the plan at which its iterations begin.
  struct Begun {
    std::size_t step;
    std::size_t call;
    std::int64_t done = 0;
  };

  void set_number(const PlanStep& step) {
    const std::int64_t length = length_of_loop(program(), step.first);
    const std::int64_t done = begun_.back().done;
    const bool reversed = is_reversed_loop(program(), step.first);
    values_[program().result(step.first)] = {
        static_cast<double>(reversed ? length - 1 - done : done)};
    is_known_[program().result(step.first)] = true;
  }

  void begin(const PlanStep& step) {
    begun_.push_back({next_, next_call_});
    set_number(step);
    for (OpId op = step.first + 1; op < step.end(); ++op) compute(op);
  }

  void repeat(const PlanStep& step) {
    const std::int64_t length = length_of_loop(program(), step.first);
    if (++begun_.back().done == length) {
      begun_.pop_back();
      return;
    }
    next_ = begun_.back().step;
    next_call_ = begun_.back().call;
    set_number(step);
    const Loops loops(program());
    const LoopRange& range = loops[loops.at(step.first)];
    for (const OpId next : range.nexts) {
      values_[program().op_operands(next)[1]] = values_[program().result(next)];
    }
    // Fills without a step of their own are computed again in the next iteration.
    for (OpId op = range.begin; op < range.end; ++op) {
      if (is_made_by_loops(program(), op)) is_known_[program().result(op)] = false;
    }
  }

  /// Skips to the end of a loop whose test fails, or to the end of a branch.
  void skip(const PlanStep& from) {
    const bool is_test = from.kind == StepKind::test;
    if (is_test) {
      const Loops loops(program());
      for (const OpId next : loops[loops.of_op(from.first)].nexts) {
        values_[program().result(next)] = value(program().op_operands(next)[1]);
        is_known_[program().result(next)] = true;
      }
      begun_.pop_back();
    }
    for (int depth = 0;;) {
      const PlanStep& step = plan_->plan.steps[++next_];
      const bool begins =
          is_test ? step.kind == StepKind::begin
                  : step.kind == StepKind::branch && program().kind(step.first) == OpKind::cond;
      const bool ends = step.kind == (is_test ? StepKind::repeat : StepKind::join);
      const bool is_next = !is_test && step.kind == StepKind::branch && depth == 0;
      if (step.kind == StepKind::collective) ++next_call_;
      if (is_next && !begins) {
        --next_;
        return;
      }
      depth += begins ? 1 : 0;
      if (ends && depth-- == 0) return;
    }
  }

  void merge(OpId op) {
    const auto operands = program().op_operands(op);
    values_[program().result(op)] = value(operands[value(operands[0])[0] != 0 ? 1 : 2]);
    is_known_[program().result(op)] = true;
  }

  void put(OpId stack) {
    const auto operands = program().op_operands(stack);
    const ValueId result = program().result(stack);
    const Elements& part = value(operands[1]);
    values_[result].resize(static_cast<std::size_t>(program().type(result).num_elements()));
    std::ranges::copy(part,
                      values_[result].begin() + static_cast<std::ptrdiff_t>(value(operands[0])[0]) *
                                                    static_cast<std::ptrdiff_t>(part.size()));
    is_known_[result] = true;
  }

  void compute(OpId op) {
    if (program().kind(op) == OpKind::stack) return put(op);
    if (program().kind(op) == OpKind::merge) return merge(op);
    std::vector<const Elements*> operands;
    for (const ValueId operand : program().op_operands(op)) operands.push_back(&value(operand));
    const ValueId result = program().result(op);
    const TensorType& type = program().type(result);
    const auto places = place_on_chip(program(), op, &mesh_, position_);
    std::vector<std::byte> rounded(static_cast<std::size_t>(type.bytes()));
    store_elements(type, evaluate({program(), op, operands, places}), rounded.data());
    values_[result] = load_elements(type, rounded.data());
    is_known_[result] = true;
    if (!plan_->checks || !is_floating(type.dtype)) return;
    for (const double element : values_[result]) {
      if (!std::isfinite(element)) {
        fail(Errc::invalid_argument, "detect_anomaly: {} at {} gives {}",
             to_string(program().kind(op)), program().loc(op), element);
      }
    }
  }

  std::byte* place(ValueId value) const {
    const auto [chip, offset] =
        place_in_arena(plan_->plan, value, mesh_, position_, plan_->shared_begin);
    return memory_.arena(chip) + offset;
  }

  /// Returns the result of a reduce_scatter that has no memory of its own, by adding up the terms.
  Elements sum_of_addends(ValueId result) const {
    const TensorType& type = program().type(result);
    std::vector<std::byte*> addends;
    for (const auto& [chip, offset] : addends_of(plan_->plan, result, mesh_, position_)) {
      addends.push_back(memory_.arena(chip) + offset);
    }
    std::vector<std::byte> sum(static_cast<std::size_t>(type.bytes()));
    std::byte* const to = sum.data();
    reduce(ReduceKind::add, type.dtype, {addends}, {std::span(&to, 1)}, type.num_elements());
    return load_elements(type, sum.data());
  }

  bool meet(const PlanStep& step, bool wait) {
    const PreparedCall& call = plan_->calls[next_call_];
    if (!std::exchange(in_collective_, true)) {
      for (OpId op = step.first; op < step.end(); ++op) {
        const ValueId operand = program().op_operands(op)[0];
        store_elements(program().type(operand), value(operand), place(operand));
      }
      communicator_.start(call);
    }
    if (wait) {
      communicator_.wait();
    } else if (!communicator_.poll()) {
      return false;
    }
    in_collective_ = false;
    ++next_call_;
    for (OpId op = step.first; op < step.end(); ++op) {
      const ValueId result = program().result(op);
      values_[result] = is_added_by_loops(program(), plan_->plan.slots, result)
                            ? sum_of_addends(result)
                            : load_elements(program().type(result), place(result));
      is_known_[result] = true;
    }
    return true;
  }

  bool may_update(bool wait) {
    if (wait) commits_.wait(commit_.step);
    return commits_.reached(commit_.step);
  }

  bool advance(bool wait) try {
    WEFT_CHECK(plan_ != nullptr);
    const std::vector<PlanStep>& steps = plan_->plan.steps;
    for (; next_ < steps.size(); ++next_) {
      const PlanStep& step = steps[next_];
      switch (step.kind) {
        case StepKind::compute: compute(step.first); break;
        case StepKind::loop:
          for (OpId op = step.first; op < step.end(); ++op) {
            if (is_elementwise(program().kind(op))) compute(op);
          }
          break;
        case StepKind::test:
        case StepKind::branch:
          compute(step.first);
          if (value(program().result(step.first))[0] == 0) skip(step);
          break;
        case StepKind::join:
        case StepKind::wait: break;  // the collective was completed at its own step
        case StepKind::begin: begin(step); break;
        case StepKind::repeat: repeat(step); break;
        case StepKind::collective:
        case StepKind::barrier:
          if (!meet(step, wait)) return false;
          break;
        case StepKind::update_wait:
          if (!may_update(wait)) return false;
          break;
      }
    }
    if (commit_.is_awaited && !may_update(wait)) return false;
    for (std::size_t i = 0; i < program().outputs.size(); ++i) {
      const ValueId output = program().outputs[i].value;
      store_elements(program().type(output), value(output), own_.data() + buffers_.outputs[i]);
    }
    plan_.reset();
    return true;
  } catch (...) {
    plan_.reset();
    throw;
  }

  const Target& target_;
  JobMemory& memory_;
  const Mesh mesh_;
  const int position_;
  const int local_index_;
  const Engines& engines_;
  const int arena_;
  BoardWriter board_;
  Communicator communicator_;
  Commits commits_;
  std::vector<std::byte> own_;
  ReferenceCollectives collectives_;

  // These members belong to the run in progress; plan_ is null between runs.
  std::shared_ptr<const ReferencePlan> plan_;
  RunBuffers buffers_;
  RunCommit commit_;
  std::vector<Elements> values_;
  std::vector<bool> is_known_;
  std::size_t next_ = 0;
  std::size_t next_call_ = 0;
  std::vector<Begun> begun_;
  bool in_collective_ = false;
};

}  // namespace

std::unique_ptr<Engine> make_reference_engine(EngineSetup setup) {
  return std::make_unique<ReferenceEngine>(std::move(setup), kReferenceTarget);
}
std::unique_ptr<Engine> make_contrary_engine(EngineSetup setup) {
  return std::make_unique<ReferenceEngine>(std::move(setup), kContraryTarget);
}

}  // namespace weft::testing
