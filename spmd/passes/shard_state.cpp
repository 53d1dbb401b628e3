#include <algorithm>
#include <map>
#include <optional>

#include "spmd/control/loops.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/passes/partition.hpp"
#include "spmd/passes/propagate.hpp"

namespace weft {
namespace {

/// Over the atoms of which the state would be replicated, though each chip needs it for a part of
/// the update alone.
constexpr int kStatePriority = 3;  // below those of presets

/// What the next version of a state is computed from, element by element.
struct Update {
  bool is_elementwise = true;       ///< nothing but states, sums over chips and scalars
  AtomMask summed = 0;              ///< the atoms of those sums
  std::vector<std::size_t> states;  ///< numbers of the inputs
};

class UpdateWalk {
 public:
  UpdateWalk(const Program& chip, std::span<const std::int32_t> input_of, ValueId output)
      : chip_(chip),
        input_of_(input_of),
        shape_(chip.shape(output)),
        seen_(chip.num_values(), false) {
    visit(output);
  }
  const Update& update() const { return update_; }

 private:
  void visit(ValueId value) {
    if (seen_[value]) return;
    seen_[value] = true;
    const OpId op = chip_.defining_op(value);
    if (chip_.type(value).num_elements() == 1 || (op != kNoId && chip_.is_fill(op))) return;
    const bool is_alike = chip_.shape(value) == shape_;
    if (op == kNoId) {
      const auto input = static_cast<std::size_t>(input_of_[value]);
      const bool is_known = is_alike && is_state(chip_.inputs[input].kind);
      if (is_known) update_.states.push_back(input);
      update_.is_elementwise = update_.is_elementwise && is_known;
    } else if (is_alike && chip_.kind(op) == OpKind::all_reduce) {
      const auto attrs = chip_.op_attrs(op);
      const AtomMask atoms = AtomList::from_bits(static_cast<std::uint64_t>(attrs[0])).mask();
      const bool is_sum = static_cast<ReduceKind>(attrs[1]) == ReduceKind::add &&
                          (update_.summed == 0 || update_.summed == atoms);
      update_.summed = static_cast<AtomMask>(update_.summed | atoms);
      update_.is_elementwise = update_.is_elementwise && is_sum;
    } else if (is_alike && is_elementwise(chip_.kind(op))) {
      for (const ValueId operand : chip_.op_operands(op)) visit(operand);
    } else {
      update_.is_elementwise = false;
    }
  }

  const Program& chip_;
  std::span<const std::int32_t> input_of_;  // by value
  const Shape& shape_;
  std::vector<bool> seen_;
  Update update_;
};

/// States of which updates are computed together: a parameter and its moments.
class Together {
 public:
  explicit Together(std::size_t count) : updates_(count), first_(count) {
    for (std::size_t i = 0; i < count; ++i) first_[i] = i;
  }
  /// `update`: of one state at least.
  void add(const Update& update) {
    for (const std::size_t state : update.states) {
      const std::size_t to = first(update.states.front());
      const std::size_t from = first(state);
      if (from != to) merge(updates_[from], updates_[to]);
      first_[from] = to;
    }
    merge(update, updates_[first(update.states.front())]);
  }
  const Update& of(std::size_t state) const { return updates_[first(state)]; }

 private:
  std::size_t first(std::size_t state) const {
    while (first_[state] != state) state = first_[state];
    return state;
  }
  static void merge(const Update& from, Update& to) {
    const bool differ = from.summed != 0 && to.summed != 0 && from.summed != to.summed;
    to.is_elementwise = to.is_elementwise && from.is_elementwise && !differ;
    to.summed = static_cast<AtomMask>(to.summed | from.summed);
    to.states.insert(to.states.end(), from.states.begin(), from.states.end());
  }

  std::vector<Update> updates_;     // by state; of those together, that of the first counts
  std::vector<std::size_t> first_;  // by state: another one of those together, at last the first
};

/// The first dim of several elements: parts of it are one range of bytes each.
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
    if (std::ranges::none_of(program_.inputs, [&](const auto& input) { return is_open(input); })) {
      return {};
    }
    const Program chip = partition(program_, mesh_, shardings_);
    std::vector<std::int32_t> input_of(chip.num_values(), -1);
    for (std::size_t i = 0; i < chip.inputs.size(); ++i) {
      input_of[chip.inputs[i].value] = static_cast<std::int32_t>(i);
    }
    Together together(chip.inputs.size());
    for (const ProgramOutput& output : chip.outputs) {
      if (output.updates < 0) continue;
      Update update = UpdateWalk(chip, input_of, output.value).update();
      update.states.push_back(static_cast<std::size_t>(output.updates));
      together.add(update);
    }
    Program result = program_;
    bool any = false;
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      const Update& update = together.of(i);
      if (!may_be_sharded(i, update)) continue;
      const AtomList atoms = mesh_.list(update.summed);
      Sharding& sharding = result.inputs[i].sharding;
      if (is_open(program_.inputs[i])) {
        const int dim = leading_dim(program_.shape(program_.inputs[i].value));
        sharding = shardings_[program_.inputs[i].value];
        sharding.dims[static_cast<std::size_t>(dim)] = atoms;
        sharding.open_mask = 0;
        for (int a = 0; a < atoms.size(); ++a) sharding.set_priority(atoms[a], kStatePriority);
        any = true;
      } else {
        sharding.replicated = static_cast<AtomMask>(sharding.replicated | atoms.mask());
      }
    }
    if (!any) return {};
    return result;
  }

 private:
  /// State of an optimizer that is large, and lies nowhere yet.
  bool is_open(const ProgramInput& input) const {
    const Shape& shape = program_.shape(input.value);
    return input.kind == InputKind::opt_state && shape.size() > 0 &&
           input.sharding.is_open(leading_dim(shape)) && is_large(input.value);
  }
  bool is_large(ValueId value) const {
    return chip_type(program_.type(value), shardings_[value], mesh_).bytes() >= bytes_min_;
  }

  bool may_be_sharded(std::size_t input, const Update& update) const {
    if (update.summed == 0 || !update.is_elementwise ||
        tier_of(update.summed, mesh_) != Tier::ici) {
      return false;
    }
    if (std::ranges::find(update.states, input) == update.states.end()) return false;
    return std::ranges::all_of(update.states, [&](std::size_t state) {
      const ProgramInput& other = program_.inputs[state];
      const Shape& shape = program_.shape(other.value);
      const Sharding& now = shardings_[other.value];
      const int dim = leading_dim(shape);
      const bool is_free = now.dims[static_cast<std::size_t>(dim)].empty() &&
                           (now.used() & update.summed) == 0 &&
                           shape[dim] % mesh_.count(mesh_.list(update.summed)) == 0;
      const bool is_pinned = (now.replicated & update.summed) != 0;
      const bool is_moment = other.kind == InputKind::opt_state;
      return is_free && (is_moment ? is_open(other) && !is_pinned : true);
    });
  }

  const Program& program_;
  const Mesh& mesh_;
  std::span<const Sharding> shardings_;
  const std::int64_t bytes_min_;
};

}  // namespace

std::optional<Program> shard_optimizer_state(const Program& program, const Mesh& mesh,
                                             std::span<const Sharding> shardings,
                                             std::int64_t bytes_min) {
  return StateSharding(program, mesh, shardings, bytes_min).run();
}

}  // namespace weft
