// Lowers collectives and custom ops.

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "spmd/stablehlo/lowering.hpp"

namespace weft {
namespace {

AtomList atoms_of_word(std::int64_t word) {
  return AtomList::from_bits(static_cast<std::uint64_t>(word));
}

/// Returns the groups of chips that differ only in the op's atoms. The order in a group is that of
/// the atoms.
std::vector<HloDims> groups_of(const HloOp& op) {
  const Mesh& mesh = op.context.mesh;
  const AtomList atoms = atoms_of_word(op.attrs()[0]);
  std::vector<HloDims> groups;
  for (int position = 0; position < mesh.size(); ++position) {
    if (mesh.index_in(position, atoms) != 0) continue;
    const std::vector<int> group = mesh.group(position, atoms);
    groups.emplace_back(group.begin(), group.end());
  }
  return groups;
}

std::string groups_text(const HloOp& op) { return "replica_groups = " + hlo_rows(groups_of(op)); }

/// Returns an i64 attribute.
std::string integer_text(std::string_view name, std::int64_t value) {
  return fmt::format("{} = {} : i64", name, value);
}

/// Returns the attribute that makes the layouts of a call's operands or results row-major. Without
/// it, XLA chooses layouts that suit the ops around the call.
std::string layouts_text(std::string_view name, const std::vector<HloType>& types) {
  std::vector<std::string> layouts;
  for (const HloType& type : types) {
    HloDims minor_first(type.dims.size());
    std::iota(minor_first.rbegin(), minor_first.rend(), std::int64_t{0});
    layouts.push_back(
        fmt::format("dense<{}> : tensor<{}xindex>",
                    minor_first.empty() ? "" : fmt::format("[{}]", fmt::join(minor_first, ", ")),
                    minor_first.size()));
  }
  return fmt::format("{} = [{}]", name, fmt::join(layouts, ", "));
}

/// Appends a call of a function of weft, and returns its results.
HloWriter::Values call(const HloOp& op, const HloWriter::Values& operands,
                       const std::vector<HloType>& results, const std::string& attributes) {
  std::vector<HloType> types;
  for (const HloValue& operand : operands) types.push_back(operand.type);
  return op.write().ops(
      "custom_call", operands, results,
      fmt::format("api_version = 4 : i32, {}, {}, {}", attributes,
                  layouts_text("operand_layouts", types), layouts_text("result_layouts", results)));
}

/// Appends a call of weft's collective (CollectiveForm::calls).
HloValue call_collective(const HloOp& op) {
  HloContext& all = op.context;
  all.collectives.push_back(op.op);
  const auto results =
      call(op, {op.operand(0), all.token}, {op.type, all.token.type},
           fmt::format("backend_config = {{collective = {} : i64}}, call_target_name = \"{}\", "
                       "has_side_effect = true",
                       all.collectives.size() - 1, kCollectiveTarget));
  all.token = results[1];
  return results[0];
}

/// Lowers a collective to a call or to StableHLO's own op, as the options choose. `kReplicas`
/// writes StableHLO's op.
template <HloValue (*kReplicas)(const HloOp&)>
HloValue in_either_form(const HloOp& op) {
  if (op.context.options.collectives == CollectiveForm::calls) return call_collective(op);
  op.context.collectives.push_back(op.op);
  return kReplicas(op);
}

std::string combiner_text(const HloOp& op) {
  const auto kind = static_cast<ReduceKind>(op.attrs()[1]);
  return op.write().combiner(combiner_of(kind, op.dtype()), op.type.element);
}

HloValue all_reduced(const HloOp& op) {
  return op.write().op("all_reduce", op.operands, op.type, groups_text(op), {combiner_text(op)});
}

HloValue all_gathered(const HloOp& op) {
  return op.write().op("all_gather", op.operands, op.type,
                       integer_text("all_gather_dim", op.attrs()[1]) + ", " + groups_text(op));
}

HloValue reduce_scattered(const HloOp& op) {
  return op.write().op("reduce_scatter", op.operands, op.type,
                       groups_text(op) + ", " + integer_text("scatter_dimension", op.attrs()[2]),
                       {combiner_text(op)});
}

HloValue exchanged(const HloOp& op) {
  const auto count = static_cast<std::int64_t>(groups_of(op)[0].size());
  return op.write().op(
      "all_to_all", op.operands, op.type,
      fmt::format("{}, {}, {}, {}", integer_text("concat_dimension", op.attrs()[2]),
                  groups_text(op), integer_text("split_count", count),
                  integer_text("split_dimension", op.attrs()[1])));
}

/// Appends a permute. `sources` has, for each chip, the chip from which it receives.
HloValue permuted_from(const HloOp& op, std::span<const int> sources) {
  std::vector<HloDims> pairs;
  for (std::size_t chip = 0; chip < sources.size(); ++chip) {
    pairs.push_back({sources[chip], static_cast<std::int64_t>(chip)});
  }
  return op.write().op("collective_permute", op.operands, op.type,
                       "source_target_pairs = " + hlo_rows(pairs));
}

/// Returns the number of the chip's shard, for a tensor whose dims are sharded by `atoms`.
std::int64_t shard_of(const Mesh& mesh, int position, std::span<const AtomList> atoms) {
  std::int64_t number = 0;
  for (const AtomList dim : atoms) {
    number = number * mesh.count(dim) + mesh.index_in(position, dim);
  }
  return number;
}

/// Returns, for each chip, the chip from which it gets its shard. Unlike in permute_sources(),
/// every chip is the source of exactly one chip, because StableHLO's permute requires this.
std::vector<int> distinct_sources(const Mesh& mesh, std::span<const AtomList> from,
                                  std::span<const AtomList> to) {
  std::vector<int> sources(static_cast<std::size_t>(mesh.size()), -1);
  std::map<std::int64_t, std::vector<int>> holders;  // by shard: the chips that don't keep it
  for (int position = mesh.size(); position-- > 0;) {
    const std::int64_t shard = shard_of(mesh, position, from);
    if (shard == shard_of(mesh, position, to)) {
      sources[static_cast<std::size_t>(position)] = position;
    } else {
      holders[shard].push_back(position);
    }
  }
  for (int position = 0; position < mesh.size(); ++position) {
    int& source = sources[static_cast<std::size_t>(position)];
    if (source >= 0) continue;
    std::vector<int>& left = holders[shard_of(mesh, position, to)];
    WEFT_CHECK(!left.empty(), position);
    source = left.back();
    left.pop_back();
  }
  return sources;
}

HloValue permuted(const HloOp& op) {
  std::vector<AtomList> sides;
  for (const std::int64_t word : op.attrs()) sides.push_back(atoms_of_word(word));
  const std::span<const AtomList> all(sides);
  const std::size_t num_dims = sides.size() / 2;
  return permuted_from(op,
                       distinct_sources(op.context.mesh, all.first(num_dims), all.last(num_dims)));
}

HloValue permuted_in_group(const HloOp& op) {
  std::vector<int> sources(static_cast<std::size_t>(op.context.mesh.size()));
  for (const HloDims& group : groups_of(op)) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      const auto from = static_cast<std::size_t>(op.attrs()[1 + i]);
      sources[static_cast<std::size_t>(group[i])] = static_cast<int>(group[from]);
    }
  }
  return permuted_from(op, sources);
}

HloValue lower_custom_call(const HloOp& op) {
  const CustomTarget& target = op.program.custom_target(op.op);
  return call(
      op, op.operands, {op.type},
      fmt::format("backend_config = {{name = {}, op = {} : i64, rule = {}}}, "
                  "call_target_name = \"{}\"",
                  hlo_quoted(target.name), op.op, hlo_quoted(target.rule), kCustomOpTarget))[0];
}

[[noreturn]] HloValue refuse_border(const HloOp& op) {
  fail(Errc::invalid_argument,
       "to_stablehlo: op {} is {}, which only a global program has; partition the program first",
       op.op, to_string(op.kind()));
}

}  // namespace

constexpr Lowering lowerings::all_reduce = in_either_form<all_reduced>;
constexpr Lowering lowerings::all_gather = in_either_form<all_gathered>;
constexpr Lowering lowerings::reduce_scatter = in_either_form<reduce_scattered>;
constexpr Lowering lowerings::all_to_all = in_either_form<exchanged>;
constexpr Lowering lowerings::collective_permute = in_either_form<permuted>;
constexpr Lowering lowerings::ppermute = in_either_form<permuted_in_group>;
constexpr Lowering lowerings::custom_call = lower_custom_call;
constexpr Lowering lowerings::enter = refuse_border;
constexpr Lowering lowerings::leave = refuse_border;

}  // namespace weft
