#include "spmd/passes/assign.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>

#include "spmd/ops/row.hpp"
#include "spmd/passes/reshard.hpp"
#include "spmd/program/word_hash.hpp"

namespace weft {
namespace {

struct Candidate {
  int factor = 0;
  AtomList atoms;
  int priority = 0;
};

class Assignment {
 public:
  Assignment(const FactorRule& rule, const Mesh& mesh, const std::vector<OpTensor>& tensors)
      : rule_(rule),
        mesh_(mesh),
        tensors_(tensors),
        atoms_(rule.factors.size()),
        costs_(tensors.size()) {
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) add_candidates(tensor, false);
    contested_ = is_contested();
    if (!contested_) return;
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) add_candidates(tensor, true);
  }

  std::vector<AtomList> run() {
    while (const std::optional<Candidate> best = best_candidate()) {
      atoms_[static_cast<std::size_t>(best->factor)] = best->atoms;
    }
    return std::move(atoms_);
  }

 private:
  /// Adds the tensor's atoms for each factor as a candidate. With `prefixes`, also adds each prefix
  /// of these atoms, because a prefix may have a better priority, or other factors may have taken
  /// the atoms after it.
  void add_candidates(std::size_t tensor, bool prefixes) {
    const Sharding& sharding = tensors_[tensor].sharding;
    const Projection projection = project(rule_, mesh_, tensor, sharding.dims);
    for (std::size_t factor = 0; factor < rule_.factors.size(); ++factor) {
      if (rule_.factors[factor].type == FactorType::need_replication) continue;
      const AtomList atoms = free_prefix(projection.atoms[factor]);
      int priority = 0;
      for (int count = 1; count <= atoms.size(); ++count) {
        priority = std::max(priority, sharding.priority(atoms[count - 1]));
        if (!prefixes && count < atoms.size()) continue;
        add_candidate({static_cast<int>(factor), atoms.prefix(count), priority});
      }
    }
  }

  /// Returns the atoms before the first atom over which the result can't be sharded. An operand may
  /// be sharded over such an atom if the op is in a shard_map function where the atom is manual,
  /// and the operand comes from outside.
  AtomList free_prefix(AtomList atoms) const {
    const AtomMask held = tensors_.back().sharding.replicated;
    int count = 0;
    while (count < atoms.size() && ((held >> atoms[count]) & 1U) == 0) ++count;
    return atoms.prefix(count);
  }

  void add_candidate(const Candidate& candidate) {
    const auto same = std::ranges::find_if(candidates_, [&](const Candidate& other) {
      return other.factor == candidate.factor && other.atoms == candidate.atoms;
    });
    if (same == candidates_.end()) {
      candidates_.push_back(candidate);
    } else {
      same->priority = std::min(same->priority, candidate.priority);
    }
  }

  /// Returns whether any two candidates exclude each other, so that the order in which they are
  /// taken matters.
  bool is_contested() const {
    for (const Candidate& a : candidates_) {
      for (const Candidate& b : candidates_) {
        const bool compatible = a.factor == b.factor
                                    ? a.atoms.is_prefix_of(b.atoms) || b.atoms.is_prefix_of(a.atoms)
                                    : (a.atoms.mask() & b.atoms.mask()) == 0;
        if (!compatible) return true;
      }
    }
    return false;
  }

  std::optional<Candidate> best_candidate() {
    std::optional<Candidate> best;
    std::tuple<int, std::int64_t, FactorType, int, int, std::uint64_t> best_rank;
    for (const Candidate& candidate : candidates_) {
      if ((best && candidate.priority > best->priority) || !fits(candidate)) continue;
      const FactorType type = rule_.factors[static_cast<std::size_t>(candidate.factor)].type;
      const std::tuple rank(candidate.priority, contested_ ? cost_with(candidate) : 0, type,
                            -candidate.atoms.size(), candidate.factor, candidate.atoms.bits());
      if (!best || rank < best_rank) {
        best = candidate;
        best_rank = rank;
      }
    }
    return best;
  }

  bool fits(const Candidate& candidate) const {
    AtomMask elsewhere = 0;
    for (std::size_t factor = 0; factor < atoms_.size(); ++factor) {
      if (static_cast<int>(factor) == candidate.factor) continue;
      elsewhere = static_cast<AtomMask>(elsewhere | atoms_[factor].mask());
    }
    const AtomList now = atoms_[static_cast<std::size_t>(candidate.factor)];
    return now != candidate.atoms && now.is_prefix_of(candidate.atoms) &&
           (candidate.atoms.mask() & elsewhere) == 0 && majors_full(candidate.factor);
  }

  bool majors_full(int factor) const {
    for (const auto& tensor : rule_.dims) {
      for (const auto& dim : tensor) {
        const auto place = std::ranges::find(dim, factor);
        if (place == dim.end()) continue;
        for (auto major = dim.begin(); major != place; ++major) {
          const auto id = static_cast<std::size_t>(*major);
          if (!is_full(mesh_, rule_.factors[id], atoms_[id])) return false;
        }
      }
    }
    return true;
  }

  /// Returns the cost of resharding the op's tensors if this candidate is also taken.
  std::int64_t cost_with(const Candidate& candidate) {
    std::vector<AtomList> atoms = atoms_;
    atoms[static_cast<std::size_t>(candidate.factor)] = candidate.atoms;
    std::int64_t cost = 0;
    for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
      if (!tensors_[tensor].free) cost += cost_of(tensor, assigned_layout(rule_, atoms, tensor));
    }
    return cost;
  }

  /// Returns the cost of resharding the tensor to this layout. The cost is cached, because most
  /// layouts are those of several candidates.
  std::int64_t cost_of(std::size_t tensor, const Sharding& layout) {
    const auto known = std::ranges::find_if(
        costs_[tensor], [&](const auto& entry) { return entry.first.same_layout(layout); });
    if (known != costs_[tensor].end()) return known->second;
    const TensorType& type = tensors_[tensor].type;
    Sharding home;
    home.dims = tensors_[tensor].sharding.dims;
    const bool is_result = tensor + 1 == tensors_.size();
    const Sharding& from = is_result ? layout : home;
    const Sharding& to = is_result ? home : layout;
    const AtomMask held = tensors_[tensor].sharding.replicated;
    const std::int64_t cost =
        reshard_cost(mesh_, type, from, reshard_steps(mesh_, type, from, to, held));
    costs_[tensor].emplace_back(layout, cost);
    return cost;
  }

  const FactorRule& rule_;
  const Mesh& mesh_;
  const std::vector<OpTensor>& tensors_;
  std::vector<Candidate> candidates_;
  bool contested_ = false;
  std::vector<AtomList> atoms_;  // indexed by factor
  // By tensor: the cost of each layout.
  std::vector<std::vector<std::pair<Sharding, std::int64_t>>> costs_;
};

}  // namespace

const std::vector<AtomList>& FactorAssignments::of(const FactorRule& rule,
                                                   std::vector<OpTensor> tensors) {
  const auto [place, is_new] = assignments_.try_emplace({&rule, std::move(tensors)});
  if (is_new) place->second = Assignment(rule, mesh_, place->first.tensors).run();
  return place->second;
}

/// The hash omits the types of the tensors, because the rule already determines them.
std::size_t FactorAssignments::Hash::operator()(const Key& key) const {
  WordHash hash;
  hash.add(reinterpret_cast<std::uintptr_t>(key.rule));
  for (const OpTensor& tensor : key.tensors) {
    for (const AtomList atoms : tensor.sharding.dims) hash.add(atoms.bits());
    hash.add(tensor.sharding.provenance);
  }
  return hash.value();
}

Sharding assigned_layout(const FactorRule& rule, const std::vector<AtomList>& assignment,
                         std::size_t tensor) {
  Sharding layout;
  layout.dims = unproject(rule, tensor, assignment);
  if (tensor + 1 < rule.dims.size()) return layout;
  for (std::size_t factor = 0; factor < assignment.size(); ++factor) {
    if (rule.factors[factor].type != FactorType::reduction || assignment[factor].empty()) continue;
    layout.unreduced = static_cast<AtomMask>(layout.unreduced | assignment[factor].mask());
    layout.reduce_kind = rule.factors[factor].reduce_kind;
  }
  return layout;
}

Sharding layout_of_output(const ProgramOutput& output, const Sharding& home) {
  Sharding closed = output.sharding;
  closed.open_mask = 0;
  for (std::size_t dim = 0; dim < closed.dims.size(); ++dim) {
    AtomList& atoms = closed.dims[dim];
    if (!output.sharding.is_open(static_cast<int>(dim)) || !atoms.is_prefix_of(home.dims[dim])) {
      continue;
    }
    for (int i = atoms.size(); i < home.dims[dim].size(); ++i) {
      const Atom atom = home.dims[dim][i];
      if (((closed.used() | closed.replicated) >> atom) & 1U) break;
      atoms.push_back(atom);
      closed.set_priority(atom, home.priority(atom));
    }
  }
  return closed;
}

bool is_made_anywhere(const Program& program, ValueId value) {
  const OpId op = program.defining_op(value);
  return op != kNoId && (program.is_fill(op) || row(program.kind(op)).traits->on_demand);
}

bool is_made_on_demand(const Program& program, ValueId value) {
  if (!is_made_anywhere(program, value)) return false;
  const OpId op = program.defining_op(value);
  return program.is_fill(op) || program.kind(op) != OpKind::constant;
}

}  // namespace weft
