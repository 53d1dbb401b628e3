/// Defines the collectives of chips' programs, and of shard_map's functions in global programs (see
/// manual.cpp). The chips of a group differ only in their coordinates along `atoms`.

#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

using infer::expect_atoms;
using infer::expect_dim;
using infer::reject;

// The following functions infer the type of an op's result.

void split(const OpSignature& op, Shape& shape, int dim, std::int64_t parts) {
  if (shape[dim] % parts != 0) {
    reject(op, "size {} of dim {} isn't a multiple of the {} chips of the group", shape[dim], dim,
           parts);
  }
  shape[dim] /= parts;
}

TensorType join(const TensorType& type, int dim, std::int64_t parts) {
  Shape shape = type.shape;
  shape[dim] *= parts;
  return {type.dtype, Shape(Words(shape))};
}

TensorType all_reduced(const OpSignature& op) {
  expect_atoms(op, op.attrs[0]);
  infer::expect_reducible(op, 1);
  return op.operands[0];
}

TensorType all_gathered(const OpSignature& op) {
  const TensorType& x = op.operands[0];
  return join(x, expect_dim(op, op.attrs[1], x.shape), expect_atoms(op, op.attrs[0]));
}

TensorType sliced(const OpSignature& op) {
  Shape shape = op.operands[0].shape;
  split(op, shape, expect_dim(op, op.attrs[1], shape), expect_atoms(op, op.attrs[0]));
  return {op.operands[0].dtype, shape};
}

TensorType reduce_scattered(const OpSignature& op) {
  const std::int64_t parts = expect_atoms(op, op.attrs[0]);
  infer::expect_reducible(op, 1);
  Shape shape = op.operands[0].shape;
  split(op, shape, expect_dim(op, op.attrs[2], shape), parts);
  return {op.operands[0].dtype, shape};
}

TensorType exchanged(const OpSignature& op) {
  const std::int64_t parts = expect_atoms(op, op.attrs[0]);
  Shape shape = op.operands[0].shape;
  const int split_dim = expect_dim(op, op.attrs[1], shape);
  const int concat_dim = expect_dim(op, op.attrs[2], shape);
  if (split_dim == concat_dim) reject(op, "dim {} is both split and concatenated", split_dim);
  split(op, shape, split_dim, parts);
  return join({op.operands[0].dtype, shape}, concat_dim, parts);
}

TensorType permuted(const OpSignature& op) {
  const TensorType& x = op.operands[0];
  const auto num_dims = static_cast<std::size_t>(x.shape.size());
  infer::expect_words(op, 2 * num_dims);
  if (op.mesh == nullptr) return x;
  for (const Words side : {op.attrs.first(num_dims), op.attrs.last(num_dims)}) {
    AtomList all;
    for (const std::int64_t bits : side) {
      const auto word = static_cast<std::uint64_t>(bits);
      const AtomList atoms = AtomList::from_bits(word);
      if (!is_atom_list(*op.mesh, word) || (all.mask() & atoms.mask()) != 0) {
        reject(op, "{:#x} isn't a list of atoms of mesh {} that no other dim uses", word,
               op.mesh->to_string());
      }
      all.append(atoms);
    }
  }
  for (std::size_t dim = 0; dim < num_dims; ++dim) {
    const auto parts = [&](std::size_t i) {
      return op.mesh->count(AtomList::from_bits(static_cast<std::uint64_t>(op.attrs[i])));
    };
    if (parts(dim) != parts(num_dims + dim)) {
      reject(op, "dim {} is in {} parts before and {} after; the shards must keep their shape", dim,
             parts(dim), parts(num_dims + dim));
    }
  }
  return x;
}

TensorType exchanged_within_group(const OpSignature& op) {
  const std::int64_t parts = expect_atoms(op, op.attrs[0]);
  const Words sources = op.attrs.subspan(1);
  infer::expect_words(op, static_cast<std::size_t>(parts) + 1);
  std::vector<bool> sends(sources.size(), false);
  for (const std::int64_t source : sources) {
    if (source < 0 || source >= parts || sends[static_cast<std::size_t>(source)]) {
      reject(op, "sources [{}] aren't a permutation of 0..{}", fmt::join(sources, ","), parts - 1);
    }
    sends[static_cast<std::size_t>(source)] = true;
  }
  return op.operands[0];
}

// The following functions return factor rules. Dims that a collective joins or divides can't be
// sharded.

FactorRule rule_with_whole_dims(const Program& program, OpId op, Words whole) {
  const ValueId x = program.op_operands(op)[0];
  const Shape& shape = program.shape(x);
  RuleMaker rule;
  rule.add_tensor(shape);
  rule.add_tensor(program.shape(program.result(op)));
  for (int dim = 0; dim < shape.size(); ++dim) {
    if (std::ranges::find(whole, std::int64_t{dim}) != whole.end()) continue;
    const int factor = rule.add_factor(shape[dim]);
    rule.put(0, dim, factor);
    rule.put(1, dim, factor);
  }
  return rule.take();
}

/// Returns a rule for ops whose attributes have dims in word `first` and the words after it.
template <std::size_t first>
FactorRule rule_by_words(const Program& program, OpId op) {
  return rule_with_whole_dims(program, op, program.op_attrs(op).subspan(first));
}

// The following functions append gradients, which only collectives in a shard_map have.

AtomList atoms_of(const ForwardOp& op) {
  return AtomList::from_bits(static_cast<std::uint64_t>(op.attrs[0]));
}

/// Returns the gradient. For a sum it is the cotangent itself. For a maximum, the chips that have
/// the maximum share the cotangent equally.
ValueId all_reduced_back(Builder& b, const ForwardOp& op, std::size_t, ValueId g) {
  const auto kind = static_cast<ReduceKind>(op.attrs[1]);
  if (kind == ReduceKind::add) return g;
  const TensorType type = b.type(g);
  const ValueId hit =
      b.convert(b.compare(CompareDirection::eq, op.operands[0], op.result), type.dtype);
  const ValueId hits = b.all_reduce(b.mesh(), hit, atoms_of(op), ReduceKind::add);
  return b.binary(OpKind::multiply, hit, b.binary(OpKind::divide, g, hits));
}

ValueId all_gathered_back(Builder& b, const ForwardOp& op, std::size_t, ValueId g) {
  const int dim = static_cast<int>(op.attrs[1]);
  return b.reduce_scatter(b.mesh(), g, atoms_of(op), ReduceKind::add, dim);
}

ValueId reduce_scattered_back(Builder& b, const ForwardOp& op, std::size_t, ValueId g) {
  WEFT_CHECK(static_cast<ReduceKind>(op.attrs[1]) == ReduceKind::add, op.attrs[1]);
  return b.all_gather(b.mesh(), g, atoms_of(op), static_cast<int>(op.attrs[2]));
}

ValueId exchanged_back(Builder& b, const ForwardOp& op, std::size_t, ValueId g) {
  return b.all_to_all(b.mesh(), g, atoms_of(op), static_cast<int>(op.attrs[2]),
                      static_cast<int>(op.attrs[1]));
}

ValueId permuted_back(Builder& b, const ForwardOp& op, std::size_t, ValueId g) {
  std::vector<int> back(op.attrs.size() - 1);
  for (std::size_t i = 0; i < back.size(); ++i) {
    back[static_cast<std::size_t>(op.attrs[i + 1])] = static_cast<int>(i);
  }
  return b.ppermute(b.mesh(), g, atoms_of(op), back);
}

bool is_sum(Words words, DType) { return static_cast<ReduceKind>(words[1]) == ReduceKind::add; }

// The following functions compute values. All chips reduce in the order of the group, so all get
// bitwise the same results.

Elements combined(ReduceKind kind, std::span<const Elements> parts) {
  Elements total = parts[0];
  for (std::size_t part = 1; part < parts.size(); ++part) {
    for (std::size_t i = 0; i < total.size(); ++i) {
      total[i] = combine(kind, total[i], parts[part][i]);
    }
  }
  return total;
}

/// Joins equal parts along `dim` into a tensor of shape `whole`.
Elements joined(std::span<const Elements> parts, const Shape& whole, int dim) {
  Elements result(static_cast<std::size_t>(whole.num_elements()));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto count = static_cast<std::int64_t>(parts.size());
    put(result, part_of(whole, dim, static_cast<std::int64_t>(i), count), parts[i]);
  }
  return result;
}

Elements all_reduced_elements(const Program& program, OpId op, std::span<const Elements> parts,
                              std::int64_t) {
  return combined(static_cast<ReduceKind>(program.op_attrs(op)[1]), parts);
}

Elements all_gathered_elements(const Program& program, OpId op, std::span<const Elements> parts,
                               std::int64_t) {
  return joined(parts, program.shape(program.result(op)),
                static_cast<int>(program.op_attrs(op)[1]));
}

Elements reduce_scattered_elements(const Program& program, OpId op, std::span<const Elements> parts,
                                   std::int64_t self) {
  const Words words = program.op_attrs(op);
  const Shape& whole = program.shape(program.op_operands(op)[0]);
  return take(combined(static_cast<ReduceKind>(words[1]), parts),
              part_of(whole, static_cast<int>(words[2]), self, std::ssize(parts)));
}

Elements exchanged_elements(const Program& program, OpId op, std::span<const Elements> parts,
                            std::int64_t self) {
  const Words words = program.op_attrs(op);
  const auto own = part_of(program.shape(program.op_operands(op)[0]), static_cast<int>(words[1]),
                           self, std::ssize(parts));
  std::vector<Elements> of_self;
  for (const Elements& part : parts) of_self.push_back(take(part, own));
  return joined(of_self, program.shape(program.result(op)), static_cast<int>(words[2]));
}

Elements permuted_elements(const Program& program, OpId op, std::span<const Elements> parts,
                           std::int64_t self) {
  const Words sources = program.op_attrs(op).subspan(1);
  return parts[static_cast<std::size_t>(sources[static_cast<std::size_t>(self)])];
}

Elements sliced_elements(const Evaluation& e) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(e.shape().size()), 0);
  at[static_cast<std::size_t>(e.attrs()[1])] = e.place[0].first;
  return take(e.operand(0), box(e.operand_shape(0), e.shape(), at));
}

std::int64_t group_of(const Program& program, OpId op, const Mesh& mesh) {
  return mesh.count(AtomList::from_bits(static_cast<std::uint64_t>(program.op_attrs(op)[0])));
}
/// Counts the additions of one chip: it reduces one part of the operands of all chips.
std::int64_t all_reduce_flops(const Program& program, OpId op, const Mesh& mesh) {
  const std::int64_t group = group_of(program, op, mesh);
  return program.type(program.op_operands(op)[0]).num_elements() * (group - 1) / group;
}
std::int64_t reduce_scatter_flops(const Program& program, OpId op, const Mesh& mesh) {
  return program.type(program.result(op)).num_elements() * (group_of(program, op, mesh) - 1);
}

constexpr Attr kAllReduce[] = {atoms(), reduce_kind()};
constexpr Attr kAllGather[] = {atoms(), integer("dim")};
constexpr Attr kReduceScatter[] = {atoms(), reduce_kind(), integer("dim")};
constexpr Attr kAllToAll[] = {atoms(), integer("split"), integer("concat")};
constexpr Attr kPermute[] = {atom_lists("from"), atom_lists("to")};
constexpr Attr kAllSlice[] = {atoms().atoms_of_dim_in(1), integer("dim")};

constexpr Attr kPpermute[] = {atoms(), list("sources")};

/// Makes the row of an op that only chips' programs have.
constexpr OpRow collective(std::string_view doc, Attrs attrs, Infer infer, Evaluate evaluate,
                           Cost cost, Traits traits) {
  return {.doc = doc,
          .operands = operands(1),
          .attrs = attrs,
          .infer = infer,
          .rule = none,
          .spreads = Spreads::later,
          .resized = none,
          .pads = Pads::no,
          .linear = none,
          .gradient = Gradient(Gradient::How::refused),
          .evaluate = evaluate,
          .decompose = none,
          .cost = cost,
          .traits = traits};
}

/// Makes the row of an op that shard_map's functions have too.
constexpr OpRow manual_collective(std::string_view doc, Attrs attrs, Infer infer, Rule rule,
                                  Linearity linear, Gradient gradient, Evaluate evaluate, Cost cost,
                                  Traits traits) {
  OpRow row = collective(doc, attrs, infer, evaluate, cost, traits);
  row.rule = rule;
  row.linear = linear;
  row.gradient = gradient;
  return row;
}

constexpr Traits kExchanges{.moves_only = true, .meets = true, .picks = Picks::some};
constexpr Traits kPermutes{
    .moves_only = true, .meets = true, .permutes = true, .picks = Picks::some};

}  // namespace

constexpr OpRow rows::all_reduce = manual_collective(
    "The operands of all chips of a group, combined. Each of these chips has the result.",
    kAllReduce, all_reduced, Rule("d* -> d*"), Linearity{Linearity::In::first, is_sum},
    all_reduced_back, all_reduced_elements, all_reduce_flops,
    Traits{.moves_only = true, .meets = true, .reorder = Reorder::nothing});
constexpr OpRow rows::all_gather = manual_collective(
    "The operands of all chips of a group, joined along dim. Each of these chips has the result.",
    kAllGather, all_gathered, rule_by_words<1>, Linearity{Linearity::In::first}, all_gathered_back,
    all_gathered_elements, Cost::How::nothing, kExchanges);
constexpr OpRow rows::reduce_scatter =
    manual_collective("This chip's part, along dim, of the result of all_reduce.", kReduceScatter,
                      reduce_scattered, rule_by_words<2>, Linearity{Linearity::In::first, is_sum},
                      reduce_scattered_back, reduce_scattered_elements, reduce_scatter_flops,
                      Traits{.moves_only = true, .near = true, .meets = true});
constexpr OpRow rows::all_to_all = manual_collective(
    "The operand is cut along `split` into one part for each chip of the group. The result joins "
    "the parts that this chip receives along `concat`.",
    kAllToAll, exchanged, rule_by_words<1>, Linearity{Linearity::In::first}, exchanged_back,
    exchanged_elements, Cost::How::nothing, kExchanges);
constexpr OpRow rows::ppermute = manual_collective(
    "On chip number i of the group, the operand of chip number sources[i].", kPpermute,
    exchanged_within_group, Rule("d* -> d*"), Linearity{Linearity::In::first}, permuted_back,
    permuted_elements, Cost::How::nothing, kPermutes);
/// `from` and `to` have the atoms of each dim, before and after. Both divide the tensor into the
/// same number of parts (permute.hpp).
constexpr OpRow rows::collective_permute =
    collective("x, whose sharding changes from `from` to `to`.", kPermute, permuted, {},
               Cost::How::nothing, kPermutes);
constexpr OpRow rows::all_slice =
    collective("This chip's part of x along dim, without traffic.", kAllSlice, sliced,
               sliced_elements, Cost::How::nothing,
               Traits{.moves_only = true, .near = true, .picks = Picks::some, .reads_part_of = 0});

}  // namespace weft
