#include "chips/cpu/cpu_loop.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "chips/cpu/jit/chain.hpp"
#include "spmd/fusion/spread.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/schedule.hpp"
#include "spmd/plan/shared.hpp"

namespace weft {
namespace {

/// Consecutive ops of a loop that become one piece of machine code.
struct Chain {
  jit::Graph graph{kernels::kernel_path().vectors};
  std::vector<CpuPlan::Operand> streams{};
  std::map<ValueId, jit::Lane> lanes{};  ///< lanes of the values that the chain reads or computes
  std::vector<OpId> ops{};
};

/// Counts how often ops read each value.
class Reads {
 public:
  void add(const Program& program, OpId op) {
    for (const ValueId value : program.op_operands(op)) ++counts_[value];
  }
  int of(ValueId value) const {
    const auto counted = counts_.find(value);
    return counted == counts_.end() ? 0 : counted->second;
  }

 private:
  std::unordered_map<ValueId, int> counts_;
};

class LoopLoader {
 public:
  LoopLoader(const LoopSource& source, std::size_t step)
      : source_(source),
        plan_(source.plan),
        program_(source.plan.program),
        fused_(source.plan.steps[step]),
        buffers_(tile_buffers_of(source.plan, step)) {
    for (OpId op = fused_.first; op < fused_.end(); ++op) reads_.add(program_, op);
  }

  CpuPlan::FusedLoop load();

 private:
  bool is_fill(ValueId value) const {
    const OpId maker = program_.defining_op(value);
    return maker != kNoId && program_.is_fill(maker);
  }
  std::optional<Spread> spread_at(ValueId value) const {
    const OpId maker = program_.defining_op(value);
    return maker == kNoId ? std::nullopt : spread_of(program_, maker);
  }
  bool is_tile(ValueId value) const { return plan_.slots[value].place == Place::tile; }
  bool is_added(ValueId value) const { return is_added_by_loops(program_, plan_.slots, value); }

  /// Returns whether the loop can run over all elements at once, row by row: whether all its ops
  /// are compiled, and all spreads that they read have rows of the same size. Sets `columns` to
  /// this size.
  bool runs_at_once();
  /// Adds the op to the chain. Returns false for an op that isn't compiled.
  bool add(Chain& chain, OpId op) const;
  jit::Lane lane(Chain& chain, ValueId value) const;
  /// Returns whether a chain must store the value, because it has a place in memory or another step
  /// of the loop reads it. `own` has counted the reads by the chain's own ops.
  bool is_read_elsewhere(const Reads& own, ValueId value) const;
  void finish(Chain chain);
  void load_op(OpId op);
  std::optional<std::size_t> fill_operand(OpId op) const;

  /// Returns the place of the value. For a tile, `offset` is the number of the value until
  /// place_tiles() replaces it.
  CpuPlan::Operand placed(ValueId value) const;
  /// Returns the operand changed so that it is read tile by tile.
  static CpuPlan::Operand tiled(CpuPlan::Operand operand, DType dtype);
  void place_tiles();

  const LoopSource& source_;
  const Plan& plan_;
  const Program& program_;
  const PlanStep& fused_;
  std::span<const TileBuffer> buffers_;
  Reads reads_;  ///< the reads by all ops of the loop
  CpuPlan::FusedLoop loop_;
};

CpuPlan::FusedLoop LoopLoader::load() {
  loop_.num_elements = program_.type(program_.result(fused_.first)).num_elements();
  if (!runs_at_once()) loop_.columns = 0;
  Chain chain;
  for (OpId op = fused_.first; op < fused_.end(); ++op) {
    if (!is_elementwise(program_.kind(op))) continue;
    Chain alone;
    if (source_.compiles && add(alone, op)) {
      add(chain, op);
      continue;
    }
    finish(std::exchange(chain, {}));
    load_op(op);
  }
  finish(std::move(chain));
  place_tiles();
  return std::move(loop_);
}

bool LoopLoader::runs_at_once() {
  if (!source_.compiles || loop_.num_elements == 0) return false;
  for (OpId op = fused_.first; op < fused_.end(); ++op) {
    if (!is_elementwise(program_.kind(op))) continue;
    Chain alone;
    if (!add(alone, op)) return false;
    for (const ValueId operand : program_.op_operands(op)) {
      const std::optional<Spread> spread = spread_at(operand);
      if (!spread) continue;
      if (loop_.columns > 0 && loop_.columns != spread->columns) return false;
      loop_.columns = spread->columns;
    }
  }
  if (loop_.columns == 0) loop_.columns = loop_.num_elements;
  return true;
}

bool LoopLoader::add(Chain& chain, OpId op) const {
  std::vector<jit::Lane> operands;
  for (const ValueId operand : program_.op_operands(op)) {
    if (!jit::has_lanes(program_.type(operand).dtype)) return false;
    operands.push_back(lane(chain, operand));
  }
  jit::Lane result;
  if (!jit::append(program_, op, operands, result)) return false;
  const ValueId value = program_.result(op);
  chain.lanes[value] = result;
  chain.ops.push_back(op);
  return true;
}

jit::Lane LoopLoader::lane(Chain& chain, ValueId value) const {
  if (const auto known = chain.lanes.find(value); known != chain.lanes.end()) return known->second;
  const DType dtype = program_.type(value).dtype;
  const OpId maker = program_.defining_op(value);
  if (const auto spread = spread_at(value); spread && loop_.columns > 0) {
    chain.streams.push_back(source_.operand(program_.op_operands(maker)[0]));
    const auto kind = spread->repeats_row ? jit::Stream::Kind::row : jit::Stream::Kind::column;
    return chain.lanes[value] = jit::read(chain.graph, dtype, kind);
  }
  if (is_added(value)) {
    const std::vector<CpuPlan::Operand> addends = source_.addends(value);
    for (const CpuPlan::Operand& addend : addends) chain.streams.push_back(tiled(addend, dtype));
    return chain.lanes[value] = jit::read_sum(chain.graph, dtype, addends.size());
  }
  if (!is_fill(value)) {
    chain.streams.push_back(placed(value));
    return chain.lanes[value] = jit::read(chain.graph, dtype, jit::Stream::Kind::dense);
  }
  if (program_.kind(maker) == OpKind::constant) {
    const auto at = static_cast<std::size_t>(program_.op_attrs(maker)[0]);
    return chain.lanes[value] = jit::fill_of(chain.graph, dtype, &program_.const_pool[at]);
  }
  chain.streams.push_back(source_.operand(program_.op_operands(maker)[0]));
  return chain.lanes[value] = jit::read(chain.graph, dtype, jit::Stream::Kind::single);
}

bool LoopLoader::is_read_elsewhere(const Reads& own, ValueId value) const {
  return !is_tile(value) || reads_.of(value) > own.of(value);
}

void LoopLoader::finish(Chain chain) {
  if (chain.ops.empty()) return;
  // The ops are added to a new chain, because only now it is known which results must be stored. A
  // result is stored right after the op that computes it.
  Chain whole;
  Reads own;
  for (const OpId op : chain.ops) own.add(program_, op);
  for (const OpId op : chain.ops) {
    add(whole, op);
    const ValueId result = program_.result(op);
    if (!is_read_elsewhere(own, result)) continue;
    whole.streams.push_back(placed(result));
    whole.graph.streams.push_back({program_.type(result).dtype, jit::Stream::Kind::dense});
    const int node = whole.lanes.at(result).number_in(whole.graph);
    whole.graph.store(node, static_cast<int>(whole.streams.size()) - 1);
  }
  auto code = jit::chain_code(whole.graph);
  if (code == nullptr) {
    loop_.columns = 0;
    for (const OpId op : chain.ops) load_op(op);
    return;
  }
  CpuPlan::Step& step = loop_.steps.emplace_back();
  step.chain = static_cast<std::int32_t>(loop_.chains.size());
  loop_.chains.push_back({std::move(code), std::move(whole.streams)});
}

/// Returns the number of an operand that is a fill, if the op's kernel may read only one element of
/// it; std::nullopt if there is none.
std::optional<std::size_t> LoopLoader::fill_operand(OpId op) const {
  const auto operands = program_.op_operands(op);
  const std::size_t first = program_.kind(op) == OpKind::select ? 1 : 0;
  // Only kernels with several operands can read an operand as a single element, and kernels that
  // check values need all elements.
  if (source_.checks || operands.size() < 2) return {};
  for (std::size_t i = operands.size(); i-- > first;) {
    if (is_tile(operands[i]) && is_fill(operands[i])) return i;
  }
  return {};
}

void LoopLoader::load_op(OpId op) {
  CpuPlan::Step& step = loop_.steps.emplace_back(source_.step(op));
  const auto operands = program_.op_operands(op);
  for (std::size_t i = 0; i < operands.size(); ++i) step.operands[i] = placed(operands[i]);
  step.result = placed(program_.result(op));
  if (const auto fill = fill_operand(op)) step.is_fill[*fill] = true;
}

CpuPlan::Operand LoopLoader::placed(ValueId value) const {
  CpuPlan::Operand operand = source_.operand(value);
  if (operand.place != Place::tile) return tiled(operand, program_.type(value).dtype);
  operand.offset = value;
  return operand;
}

CpuPlan::Operand LoopLoader::tiled(CpuPlan::Operand operand, DType dtype) {
  operand.tile_bytes = static_cast<std::uint64_t>(CpuPlan::kTileSize * byte_size(dtype));
  return operand;
}

/// Gives each tile its place. If the loop has compiled ops, each value gets a tile of its own,
/// because these ops read and write tiles in an order for which the plan's tile buffers aren't
/// safe.
void LoopLoader::place_tiles() {
  std::map<ValueId, std::uint64_t> buffer_of;
  std::uint64_t buffer_bytes = 0;
  const auto place = [&](CpuPlan::Operand& operand) {
    if (operand.place != Place::tile) return;
    const auto value = static_cast<ValueId>(operand.offset);
    buffer_bytes = std::max(
        buffer_bytes,
        static_cast<std::uint64_t>(CpuPlan::kTileSize * byte_size(program_.type(value).dtype)));
    buffer_of.try_emplace(value, buffer_of.size());
  };
  const auto for_each_operand = [&](const auto& change) {
    for (CpuPlan::Step& step : loop_.steps) {
      for (int i = 0; i < step.num_operands; ++i)
        change(step.operands[static_cast<std::size_t>(i)]);
      if (step.chain < 0) change(step.result);
    }
    for (CpuPlan::Chain& chain : loop_.chains) std::ranges::for_each(chain.streams, change);
  };
  for_each_operand(place);
  if (loop_.chains.empty()) {
    for (const TileBuffer& tile : buffers_) buffer_of[tile.value] = tile.buffer;
  }
  for (const auto& [value, buffer] : buffer_of) {
    loop_.scratch_bytes = std::max(loop_.scratch_bytes, (buffer + 1) * buffer_bytes);
    const OpId maker = program_.defining_op(value);
    if (is_fill(value)) {
      loop_.fills.push_back(source_.step(maker));
      loop_.fills.back().result.offset = buffer * buffer_bytes;
    } else if (const auto spread = spread_at(value)) {
      const auto bytes = static_cast<std::size_t>(byte_size(program_.type(value).dtype));
      CpuPlan::Operand to = source_.operand(value);
      to.offset = buffer * buffer_bytes;
      loop_.spreads.push_back(
          {*spread, bytes, source_.operand(program_.op_operands(maker)[0]), to});
    } else if (is_added(value)) {
      CpuPlan::Operand to = source_.operand(value);
      to.offset = buffer * buffer_bytes;
      loop_.sums.push_back({program_.type(value).dtype, source_.addends(value), to});
    }
  }
  for_each_operand([&](CpuPlan::Operand& operand) {
    if (operand.place != Place::tile) return;
    operand.offset = buffer_of.at(static_cast<ValueId>(operand.offset)) * buffer_bytes;
  });
}

}  // namespace

CpuPlan::FusedLoop load_loop(const LoopSource& source, std::size_t step) {
  return LoopLoader(source, step).load();
}

}  // namespace weft
