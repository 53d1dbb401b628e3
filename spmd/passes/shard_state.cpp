#include <algorithm>
#include <map>
#include <optional>

#include "spmd/ops/row.hpp"
#include "spmd/passes/partition.hpp"
#include "spmd/passes/propagate.hpp"

namespace weft {
namespace {

/// The priority of the shardings that this file makes. It comes after the priorities of presets, so
/// that shardings of presets are propagated first.
constexpr int kStatePriority = 3;

/// Describes the values from which the next version of a parameter or state is computed.
struct Update {
  bool is_elementwise = true;       ///< elementwise; reads only states, sums over chips, scalars
  AtomMask summed = 0;              ///< the atoms over which these sums extend
  std::vector<std::size_t> states;  ///< input numbers of the states that are read
};

Update update_of(const Program& chip, std::span<const std::int32_t> input_of, ValueId output) {
  Update update;
  std::vector<bool> is_seen(chip.num_values(), false);
  std::vector<ValueId> values{output};
  const Shape& shape = chip.shape(output);
  while (!values.empty() && update.is_elementwise) {
    const ValueId value = values.back();
    values.pop_back();
    if (is_seen[value]) continue;
    is_seen[value] = true;
    const OpId op = chip.defining_op(value);
    if (chip.type(value).num_elements() == 1 || (op != kNoId && chip.is_fill(op))) continue;
    const bool is_alike = chip.shape(value) == shape;
    if (op == kNoId) {
      const auto input = static_cast<std::size_t>(input_of[value]);
      update.states.push_back(input);
      update.is_elementwise = is_alike && is_state(chip.inputs[input].kind);
    } else if (is_alike && chip.kind(op) == OpKind::all_reduce) {
      const auto attrs = chip.op_attrs(op);
      const AtomMask atoms = AtomList::from_bits(static_cast<std::uint64_t>(attrs[0])).mask();
      const bool is_like_others = update.summed == 0 || update.summed == atoms;
      update.is_elementwise =
          is_like_others && static_cast<ReduceKind>(attrs[1]) == ReduceKind::add;
      update.summed = atoms;
    } else if (is_alike && is_elementwise(chip.kind(op))) {
      values.insert(values.end(), chip.op_operands(op).begin(), chip.op_operands(op).end());
    } else {
      update.is_elementwise = false;
    }
  }
  return update;
}

/// Returns the first dim with more than one element. Each part along this dim is one range of
/// bytes.
int leading_dim(const Shape& shape) {
  int dim = 0;
  while (dim + 1 < shape.size() && shape[dim] == 1) ++dim;
  return dim;
}

class StateSharding {
 public:
  StateSharding(const Program& program, const Mesh& mesh, std::span<const Sharding> shardings,
                std::int64_t bytes_min)
      : program_(program), mesh_(mesh), shardings_(shardings), bytes_min_(bytes_min) {}

  std::optional<Program> run() {
    const auto is_candidate = [&](const ProgramInput& input) { return is_open(input); };
    if (std::ranges::none_of(program_.inputs, is_candidate)) return {};
    find_updates();
    Program result = program_;
    AtomMask sharded = 0;
    for (const auto& [parameter, update] : updates_) {
      const bool is_parameter = program_.inputs[parameter].kind == InputKind::param;
      if (!is_parameter || !may_be_shared(parameter)) continue;
      const AtomMask shared = within_host(update.summed);
      for (const std::size_t state : update.states) {
        if (state != parameter) shard(result.inputs[state], mesh_.list(shared));
      }
      sharded = static_cast<AtomMask>(sharded | shared);
    }
    if (sharded == 0) return {};
    // All other updated inputs mustn't be sharded over these atoms. Otherwise propagation would
    // shard parameters and their averages over them too.
    for (const auto& [state, update] : updates_) {
      Sharding& sharding = result.inputs[state].sharding;
      const AtomMask used = shardings_[program_.inputs[state].value].used();
      if (sharding.open_mask == 0) continue;
      sharding.replicated = static_cast<AtomMask>(sharding.replicated | (sharded & ~used));
    }
    return result;
  }

 private:
  void find_updates() {
    const Program chip = partition(program_, mesh_, shardings_);
    std::vector<std::int32_t> input_of(chip.num_values(), -1);
    for (std::size_t i = 0; i < chip.inputs.size(); ++i) {
      input_of[chip.inputs[i].value] = static_cast<std::int32_t>(i);
    }
    for (const ProgramOutput& output : chip.outputs) {
      if (output.updates < 0) continue;
      const auto updated = static_cast<std::size_t>(output.updates);
      updates_[updated] = update_of(chip, input_of, output.value);
      if (chip.inputs[updated].kind != InputKind::param) continue;
      for (const std::size_t state : updates_[updated].states) ++parameters_of_[state];
    }
  }

  /// Returns whether the input is large optimizer state whose leading dim is open.
  bool is_open(const ProgramInput& input) const {
    const Shape& shape = program_.shape(input.value);
    return input.kind == InputKind::opt_state && shape.size() > 0 &&
           input.sharding.is_open(leading_dim(shape)) && is_large(input.value);
  }
  bool is_large(ValueId value) const {
    return chip_type(program_.type(value), shardings_[value], mesh_).bytes() >= bytes_min_;
  }

  /// Returns the atoms of a sum that extend within a host, over which the state is sharded. Each
  /// host keeps the complete state.
  AtomMask within_host(AtomMask summed) const {
    return static_cast<AtomMask>(summed & ~mesh_.dcn_atoms());
  }

  /// Returns whether each chip may compute only a part of the update of this parameter, and of the
  /// state that the update reads.
  bool may_be_shared(std::size_t parameter) const {
    const Update& update = updates_.at(parameter);
    const AtomMask shared = within_host(update.summed);
    if (shared == 0 || !update.is_elementwise || !is_free(parameter, shared)) return false;
    return std::ranges::all_of(update.states, [&](std::size_t state) {
      if (state == parameter) return true;
      const ProgramInput& input = program_.inputs[state];
      return is_open(input) && is_free(state, shared) && parameters_of_.at(state) == 1 &&
             (shardings_[input.value].replicated & shared) == 0 && is_updated_within(state, update);
    });
  }

  /// Returns whether the input's leading dim can be sharded over the atoms.
  bool is_free(std::size_t input, AtomMask atoms) const {
    const ValueId value = program_.inputs[input].value;
    const Shape& shape = program_.shape(value);
    const int dim = leading_dim(shape);
    const Sharding& now = shardings_[value];
    return shape.size() > 0 && now.dims[static_cast<std::size_t>(dim)].empty() &&
           (now.used() & atoms) == 0 && shape[dim] % mesh_.count(mesh_.list(atoms)) == 0;
  }

  /// Returns whether the update of the state reads only values that the update `whole` of the
  /// parameter also reads.
  bool is_updated_within(std::size_t state, const Update& whole) const {
    const auto found = updates_.find(state);
    if (found == updates_.end()) return true;
    const Update& own = found->second;
    return own.is_elementwise && (own.summed == 0 || own.summed == whole.summed) &&
           std::ranges::all_of(own.states, [&](std::size_t read) {
             return std::ranges::find(whole.states, read) != whole.states.end();
           });
  }

  void shard(ProgramInput& input, AtomList atoms) const {
    Sharding sharding = shardings_[input.value];
    sharding.dims[static_cast<std::size_t>(leading_dim(program_.shape(input.value)))] = atoms;
    sharding.open_mask = 0;
    for (int i = 0; i < atoms.size(); ++i) sharding.set_priority(atoms[i], kStatePriority);
    input.sharding = sharding;
  }

  const Program& program_;
  const Mesh& mesh_;
  std::span<const Sharding> shardings_;
  const std::int64_t bytes_min_;
  std::map<std::size_t, Update> updates_;  // key: the number of the updated input
  // Key: the input number of a state. Value: how many parameters' updates read the state.
  std::map<std::size_t, int> parameters_of_;
};

}  // namespace

std::optional<Program> shard_optimizer_state(const Program& program, const Mesh& mesh,
                                             std::span<const Sharding> shardings,
                                             std::int64_t bytes_min) {
  return StateSharding(program, mesh, shardings, bytes_min).run();
}

}  // namespace weft
