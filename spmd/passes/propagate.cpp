#include "spmd/passes/propagate.hpp"

#include <algorithm>
#include <deque>
#include <span>
#include <tuple>

#include "spmd/control/manual_axes.hpp"
#include "spmd/passes/factor_rules.hpp"

namespace weft {
namespace {

/// The rounds of one user priority, in order. Each round also does the work of the earlier rounds.
enum class Round {
  single_use_elementwise,  // elementwise ops that are the only users of their operands
  elementwise,
  pass_through,        // pass-through factors of all ops; broadcasts only toward their operand
  all_factors,         // reduction factors too; broadcasts only toward their operand
  broadcasts_forward,  // broadcasts also toward their result
};
constexpr Round kRounds[] = {Round::single_use_elementwise, Round::elementwise, Round::pass_through,
                             Round::all_factors, Round::broadcasts_forward};
constexpr int kRoundCount = static_cast<int>(std::size(kRounds));
constexpr int kPriorityMax = 15;

/// A set of tensors whose shardings depend on each other: the tensors of an op, or an output and
/// its value.
struct Node {
  const FactorRule* rule = nullptr;
  std::span<const std::uint32_t> tensors;  // indices into shardings_
  bool is_broadcast = false;
  bool single_use = false;
  int done = -1;  // stage() of the last visit; -1: no visit since a tensor changed
};

/// Proposes to shard `factor` over `atoms` in all tensors of a node.
struct Candidate {
  int factor = 0;
  AtomList atoms;
  std::int64_t source_size = 0;
  std::size_t source_tensor = 0;

  /// In a conflict, the candidate with the larger source wins.
  auto rank() const { return std::tuple(-source_size, source_tensor, factor); }
};

/// Computes the longest of the added lists if all other lists are its prefixes, and otherwise the
/// prefix that all lists have in common.
class CommonAtoms {
 public:
  void add(AtomList atoms) {
    const int same = atoms.common_prefix(atoms_);
    const bool parts = same < atoms.size() && same < atoms_.size();
    if (parts) atoms_ = atoms_.prefix(same);
    if (!parts && !parted_ && atoms.size() > atoms_.size()) atoms_ = atoms;
    parted_ = parted_ || parts;
  }
  AtomList atoms() const { return atoms_; }

 private:
  AtomList atoms_;
  bool parted_ = false;
};

class Propagation {
 public:
  Propagation(const Program& program, const Mesh& mesh) : program_(program), mesh_(mesh) {
    seed();
    add_nodes();
    index_nodes();
  }

  std::vector<Sharding> run() {
    const unsigned priorities = priorities_used();
    for (priority_ = 0; priority_ <= kPriorityMax; ++priority_) {
      if (((priorities >> priority_) & 1U) == 0) continue;
      for (const Round round : kRounds) {
        round_ = round;
        to_fixpoint();
      }
    }
    shardings_.resize(program_.num_values());
    return std::move(shardings_);
  }

 private:
  void seed() {
    for (ValueId value = 0; value < program_.num_values(); ++value) {
      shardings_.push_back(Sharding::open(program_.shape(value).size()));
    }
    for (const ProgramInput& input : program_.inputs) shardings_[input.value] = input.sharding;
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      if (program_.kind(op) != OpKind::sharding_constraint) continue;
      const auto index = static_cast<std::size_t>(program_.op_attrs(op)[0]);
      shardings_[program_.result(op)] = program_.constraints[index];
    }
    if (ManualAxes::has_any(program_)) seed_manual();
    for (const ProgramOutput& output : program_.outputs) shardings_.push_back(output.sharding);
    use_count_.assign(program_.num_values(), 0);
    for (const ValueId operand : program_.operands) ++use_count_[operand];
    for (const ProgramOutput& output : program_.outputs) ++use_count_[output.value];
  }

  /// Forbids that values in a shard_map function are sharded over its manual atoms. Shards the
  /// values that leave the function over these atoms.
  void seed_manual() {
    const ManualAxes axes(program_);
    for (ValueId value = 0; value < program_.num_values(); ++value) {
      AtomMask& held = shardings_[value].replicated;
      held = static_cast<AtomMask>(held | (axes.held(value) & ~shardings_[value].used()));
    }
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      if (program_.kind(op) != OpKind::leave) continue;
      const Words attrs = program_.op_attrs(op);
      for (std::size_t dim = 0; dim + 1 < attrs.size(); ++dim) {
        shardings_[program_.result(op)].dims[dim] =
            AtomList::from_bits(static_cast<std::uint64_t>(attrs[dim + 1]));
      }
    }
  }

  void add_nodes() {
    const std::size_t num_outputs = program_.outputs.size();
    tensors_.reserve(program_.operands.size() + program_.num_ops() + 2 * num_outputs);
    output_rules_.reserve(num_outputs);
    nodes_.reserve(program_.num_ops() + num_outputs);
    for (OpId op = 0; op < program_.num_ops(); ++op) add_op(op);
    for (std::uint32_t output = 0; output < num_outputs; ++output) add_output(output);
  }

  void add_op(OpId op) {
    const auto operands = program_.op_operands(op);
    const std::size_t first = tensors_.size();
    tensors_.insert(tensors_.end(), operands.begin(), operands.end());
    tensors_.push_back(program_.result(op));
    nodes_.push_back({.rule = &rules_.of(op),
                      .tensors = std::span(tensors_).subspan(first),
                      .is_broadcast = *row(program_.kind(op)).spreads == Spreads::broadcast,
                      .single_use = std::ranges::all_of(operands, [&](ValueId operand) {
                        return use_count_[operand] == 1 || program_.shape(operand).size() == 0;
                      })});
  }

  /// Adds a node that joins an output with its value, or with the input that it updates.
  void add_output(std::uint32_t index) {
    const ProgramOutput& output = program_.outputs[index];
    const std::size_t first = tensors_.size();
    tensors_.push_back(output.value);
    tensors_.push_back(output.updates < 0
                           ? program_.num_values() + index
                           : program_.inputs[static_cast<std::size_t>(output.updates)].value);
    output_rules_.push_back(identity_rule(program_.shape(output.value)));
    nodes_.push_back({.rule = &output_rules_.back(),
                      .tensors = std::span(tensors_).subspan(first),
                      .single_use = use_count_[output.value] == 1});
  }

  void index_nodes() {
    nodes_of_.resize(shardings_.size());
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      for (const std::uint32_t tensor : nodes_[node].tensors) {
        if (nodes_of_[tensor].empty() || nodes_of_[tensor].back() != node) {
          nodes_of_[tensor].push_back(node);
        }
      }
    }
  }

  /// Returns a mask in which bit p is set if some atom has user priority p, and bit 0 is always
  /// set. Propagation adds no other priorities.
  unsigned priorities_used() const {
    unsigned priorities = 1;
    for (const Sharding& sharding : shardings_) {
      const AtomMask used = sharding.used();
      for (int atom = 1; used >> atom != 0; ++atom) {
        if ((used >> atom) & 1U) priorities |= 1U << sharding.priority(static_cast<Atom>(atom));
      }
    }
    return priorities;
  }

  void to_fixpoint() {
    queued_.assign(nodes_.size(), true);
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) queue_.push_back(node);
    while (!queue_.empty()) {
      const std::uint32_t node = queue_.front();
      queue_.pop_front();
      queued_[node] = false;
      visit(nodes_[node]);
    }
  }

  void visit(Node& node) {
    const int now = stage(node);
    if (node.done == now) return;
    node.done = now;
    const auto& factors = node.rule->factors;
    const bool is_sharded = std::ranges::any_of(
        node.tensors, [&](std::uint32_t tensor) { return shardings_[tensor].is_sharded(); });
    if (!is_sharded || std::ranges::none_of(factors, [&](const Factor& factor) {
          return may_propagate(node, factor);
        })) {
      return;
    }
    find_candidates(node);
    for (const Candidate& candidate : candidates_) {
      for (std::size_t tensor = 0; tensor < node.tensors.size(); ++tensor) {
        extend(node, tensor, candidate);
      }
    }
  }

  /// Returns a number for the present round and priority that is equal for rounds in which the node
  /// is treated alike. A visit can be skipped if the node's last visit had the same number and no
  /// tensor has changed since.
  int stage(const Node& node) const {
    const Round first = node.single_use ? Round::single_use_elementwise : Round::elementwise;
    const Round last = node.is_broadcast ? Round::broadcasts_forward : Round::all_factors;
    const Round round = node.rule->elementwise ? std::min(round_, first)
                                               : std::clamp(round_, Round::elementwise, last);
    return kRoundCount * priority_ + static_cast<int>(round);
  }

  bool may_propagate(const Node& node, const Factor& factor) const {
    if (factor.type == FactorType::need_replication) return false;
    if (node.rule->elementwise) return round_ >= Round::elementwise || node.single_use;
    if (round_ == Round::pass_through) return factor.type == FactorType::pass_through;
    return round_ > Round::pass_through;
  }

  /// Returns the dim's atoms before the first atom whose user priority comes after the current
  /// priority.
  AtomList visible(const Sharding& sharding, std::size_t dim) const {
    const AtomList atoms = sharding.dims[dim];
    int count = 0;
    while (count < atoms.size() && sharding.priority(atoms[count]) <= priority_) ++count;
    return atoms.prefix(count);
  }

  /// Fills `projections_` with the visible atoms of each factor of each tensor.
  void project_visible(const Node& node) {
    const std::size_t num_factors = node.rule->factors.size();
    projections_.assign(node.tensors.size() * num_factors, {});
    for (std::size_t tensor = 0; tensor < node.tensors.size(); ++tensor) {
      const auto& dims = node.rule->dims[tensor];
      const Sharding& sharding = shardings_[node.tensors[tensor]];
      for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        if (sharding.dims[dim].empty()) continue;
        project_dim(*node.rule, mesh_, dims[dim], visible(sharding, dim),
                    std::span(projections_).subspan(tensor * num_factors, num_factors));
      }
    }
  }
  AtomList projection(const Node& node, std::size_t tensor, std::size_t factor) const {
    return projections_[tensor * node.rule->factors.size() + factor];
  }

  /// Fills `candidates_` with the node's candidates, in the order in which visit() applies them.
  void find_candidates(const Node& node) {
    project_visible(node);
    candidates_.clear();
    for (std::size_t factor = 0; factor < node.rule->factors.size(); ++factor) {
      if (!may_propagate(node, node.rule->factors[factor])) continue;
      CommonAtoms common;
      for (std::size_t tensor = 0; tensor < node.tensors.size(); ++tensor) {
        common.add(projection(node, tensor, factor));
      }
      if (common.atoms().empty()) continue;
      candidates_.push_back({.factor = static_cast<int>(factor), .atoms = common.atoms()});
      set_source(node, candidates_.back());
    }
    std::ranges::sort(candidates_, {}, &Candidate::rank);
  }

  /// Makes the largest tensor that has all atoms of the candidate its source.
  void set_source(const Node& node, Candidate& candidate) const {
    const auto factor = static_cast<std::size_t>(candidate.factor);
    for (std::size_t tensor = 0; tensor < node.tensors.size(); ++tensor) {
      if (!candidate.atoms.is_prefix_of(projection(node, tensor, factor))) continue;
      const std::int64_t size = num_elements(node, tensor);
      if (size <= candidate.source_size) continue;
      candidate.source_size = size;
      candidate.source_tensor = tensor;
    }
  }

  /// Returns the best priority that atom number `i` of the candidate has in any tensor of the node.
  int priority(const Node& node, const Candidate& candidate, int i) const {
    int best = kPriorityMax;
    for (std::size_t tensor = 0; tensor < node.tensors.size(); ++tensor) {
      const auto factor = static_cast<std::size_t>(candidate.factor);
      if (i >= projection(node, tensor, factor).size()) continue;
      const Sharding& sharding = shardings_[node.tensors[tensor]];
      best = std::min(best, sharding.priority(candidate.atoms[i]));
    }
    return best;
  }

  static std::int64_t num_elements(const Node& node, std::size_t tensor) {
    std::int64_t size = 1;
    for (const auto& factors : node.rule->dims[tensor]) {
      for (const std::size_t factor : factors) {
        size *= node.rule->factors[factor].size;
      }
    }
    return size;
  }

  /// Appends the candidate's atoms to the tensor's dim that has the candidate's factor. Stops at
  /// the first atom that the tensor can't take.
  void extend(const Node& node, std::size_t tensor, const Candidate& candidate) {
    const bool is_result = tensor + 1 == node.tensors.size();
    if (node.is_broadcast && is_result && round_ < Round::broadcasts_forward) return;
    const auto factor = static_cast<std::size_t>(candidate.factor);
    if (projection(node, tensor, factor) == candidate.atoms) return;  // the tensor has all atoms
    const auto& dims = node.rule->dims[tensor];
    const auto at = std::ranges::find_if(dims, [&](const DimFactors& factors) {
      return std::ranges::find(factors, factor) != factors.end();
    });
    const auto dim = static_cast<std::size_t>(at - dims.begin());
    Sharding& sharding = shardings_[node.tensors[tensor]];
    if (at == dims.end() || !sharding.is_open(static_cast<int>(dim))) return;
    // A dim that has atoms of a later priority isn't extended, so that the user's order is kept.
    if (visible(sharding, dim) != sharding.dims[dim]) return;
    FactorAtoms atoms(node.rule->factors.size());
    if (project_dim(*node.rule, mesh_, *at, sharding.dims[dim], atoms)) return;
    const AtomList has = atoms[factor];
    if (has == candidate.atoms || !has.is_prefix_of(candidate.atoms)) return;
    const bool majors_full = std::all_of(
        at->begin(), std::ranges::find(*at, factor),
        [&](std::size_t major) { return is_full(mesh_, node.rule->factors[major], atoms[major]); });
    if (!majors_full) return;
    bool changed = false;
    for (int i = has.size(); i < candidate.atoms.size(); ++i) {
      const Atom atom = candidate.atoms[i];
      const unsigned taken = sharding.used() | sharding.replicated | sharding.unreduced;
      if ((taken >> atom) & 1U) break;
      sharding.dims[dim].push_back(atom);
      sharding.set_priority(atom, priority(node, candidate, i));
      changed = true;
    }
    if (changed) enqueue(node.tensors[tensor]);
  }

  void enqueue(std::uint32_t tensor) {
    for (const std::uint32_t node : nodes_of_[tensor]) {
      nodes_[node].done = -1;
      if (queued_[node]) continue;
      queued_[node] = true;
      queue_.push_back(node);
    }
  }

  const Program& program_;
  const Mesh& mesh_;
  std::vector<Sharding> shardings_;  // shardings of the values, then of the outputs
  std::vector<std::uint32_t> use_count_;
  FactorRules rules_{program_};
  std::vector<FactorRule> output_rules_;
  std::vector<std::uint32_t> tensors_;  // tensors of all nodes, node by node
  std::vector<Node> nodes_;
  std::vector<std::vector<std::uint32_t>> nodes_of_;  // indexed by sharding: the nodes that have it
  std::deque<std::uint32_t> queue_;
  std::vector<bool> queued_;           // indexed by node
  std::vector<AtomList> projections_;  // projections of the visited node, by tensor, then factor
  std::vector<Candidate> candidates_;  // candidates of the visited node
  Round round_ = Round::single_use_elementwise;
  int priority_ = 0;
};

}  // namespace

std::vector<Sharding> propagate(const Program& program, const Mesh& mesh) {
  return Propagation(program, mesh).run();
}

}  // namespace weft
