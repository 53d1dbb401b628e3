#include <weft/tests/support/random_program.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include <weft/spmd/program/builder.hpp>

namespace weft::testing {
namespace {

constexpr std::int64_t kElementCountMax = 1024;
constexpr double kMagnitudeMax = 1e15;  // < 2^50

class ProgramMaker {
 public:
  ProgramMaker(const Mesh& mesh, Random& random) : mesh_(mesh), random_(random) {}

  Program run() {
    const std::uint64_t num_inputs = 1 + random_.below(3);
    for (std::uint64_t i = 0; i < num_inputs; ++i) add_input();
    const std::uint64_t num_ops = 2 + random_.below(19);
    while (program_.num_ops() < num_ops) {
      if (const std::optional<ValueId> value = try_op()) values_.push_back(*value);
    }
    add_outputs();
    return std::move(program_);
  }

 private:
  std::int64_t any_size() {
    constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 6, 8, 12, 16};
    return kSizes[random_.below(std::size(kSizes))];
  }

  Shape any_shape() {
    std::vector<std::int64_t> dims(random_.below(5));
    do {
      std::ranges::generate(dims, [&] { return any_size(); });
    } while (Shape(dims).num_elements() > kElementCountMax);
    return Shape(dims);
  }

  /// Each atom goes to a random dim, if it divides it, or to none.
  Sharding any_sharding(const Shape& shape) {
    Sharding sharding;
    std::vector<Atom> atoms(static_cast<std::size_t>(mesh_.num_atoms()));
    std::iota(atoms.begin(), atoms.end(), Atom{1});
    for (std::size_t i = atoms.size(); i > 1; --i) std::swap(atoms[i - 1], atoms[random_.below(i)]);
    const int priority = static_cast<int>(random_.below(3));
    for (const Atom atom : atoms) {
      if (shape.size() == 0 || random_.one_in(3)) continue;
      const auto dim = random_.below(static_cast<std::uint64_t>(shape.size()));
      const std::int64_t parts = mesh_.count(sharding.dims[dim]) * mesh_.atom_size(atom);
      if (shape[static_cast<int>(dim)] % parts != 0) continue;
      sharding.dims[dim].push_back(atom);
      sharding.set_priority(atom, priority);
    }
    if (random_.one_in(2)) sharding.open_mask = Sharding::open(shape.size()).open_mask;
    return random_.one_in(4) ? Sharding::open(shape.size()) : sharding;
  }

  void add_input() {
    const Shape shape = any_shape();
    constexpr InputKind kKinds[] = {InputKind::param, InputKind::data};
    values_.push_back(program_.add_input({DType::f32, shape}, kKinds[random_.below(2)], "in",
                                         any_sharding(shape)));
    magnitude_.push_back(2);
  }

  /// Half the time the newest, so that chains get long.
  ValueId any_value() {
    return random_.one_in(2) ? values_.back() : values_[random_.below(values_.size())];
  }

  ValueId any_value_like(ValueId other) {
    std::vector<ValueId> same;
    std::ranges::copy_if(values_, std::back_inserter(same), [&](ValueId value) {
      return program_.type(value) == program_.type(other);
    });
    return same[random_.below(same.size())];
  }

  ValueId made(ValueId value, double magnitude) {
    magnitude_.resize(program_.num_values(), 2);
    magnitude_[value] = magnitude;
    return value;
  }

  double magnitude(ValueId value) const { return magnitude_[value]; }

  /// nullopt where the op that came up doesn't fit its operand.
  std::optional<ValueId> try_op() {
    const ValueId x = any_value();
    switch (random_.below(14)) {
      case 0: return made(b_.unary(OpKind::negate, x), magnitude(x));
      case 1:
        return made(b_.unary(random_.one_in(2) ? OpKind::abs : OpKind::sign, x), magnitude(x));
      case 2:
      case 3:
      case 4: return binary(x);
      case 5: return select(x);
      case 6: return constant(x);
      case 7: return reshape(x);
      case 8: return transpose(x);
      case 9: return broadcast(x);
      case 10:
      case 11: return dot_general(x);
      case 12: return reduce(x);
      default:
        return made(b_.sharding_constraint(x, any_sharding(program_.shape(x))), magnitude(x));
    }
  }

  std::optional<ValueId> binary(ValueId a) {
    constexpr OpKind kKinds[] = {OpKind::add, OpKind::subtract, OpKind::multiply, OpKind::maximum,
                                 OpKind::minimum};
    const OpKind kind = kKinds[random_.below(std::size(kKinds))];
    const ValueId b = any_value_like(a);
    const double result =
        kind == OpKind::multiply ? magnitude(a) * magnitude(b) : magnitude(a) + magnitude(b);
    if (result > kMagnitudeMax) return std::nullopt;
    return made(b_.binary(kind, a, b), result);
  }

  std::optional<ValueId> select(ValueId a) {
    const ValueId b = any_value_like(a);
    const ValueId predicate = b_.compare(CompareDirection::lt, b, any_value_like(a));
    return made(b_.select(predicate, a, b), std::max(magnitude(a), magnitude(b)));
  }

  /// A splat, a table or an iota of the shape of x.
  std::optional<ValueId> constant(ValueId x) {
    const TensorType type = program_.type(x);
    const std::uint64_t which = random_.below(3);
    if (which == 0) return made(b_.constant(static_cast<double>(random_.below(3)), type), 2);
    if (which == 1 && type.shape.size() > 0) {
      const auto dim =
          static_cast<int>(random_.below(static_cast<std::uint64_t>(type.shape.size())));
      return made(b_.iota(type, dim), static_cast<double>(type.shape[dim]));
    }
    std::vector<float> table(static_cast<std::size_t>(type.num_elements()));
    std::ranges::generate(table, [&] { return static_cast<float>(random_.below(3)); });
    return made(b_.constant(std::as_bytes(std::span(table)), type), 2);
  }

  /// The dims' prime factors, grouped anew.
  std::optional<ValueId> reshape(ValueId x) {
    std::vector<std::int64_t> primes;
    for (std::int64_t size : program_.shape(x)) {
      for (std::int64_t prime = 2; size > 1; ++prime) {
        for (; size % prime == 0; size /= prime) primes.push_back(prime);
      }
    }
    std::vector<std::int64_t> dims;
    for (const std::int64_t prime : primes) {
      if (dims.empty() || (dims.size() < 4 && random_.one_in(2))) dims.push_back(1);
      if (random_.one_in(5)) std::ranges::reverse(dims);
      dims.back() *= prime;
    }
    return made(b_.reshape(x, Shape(dims)), magnitude(x));
  }

  std::optional<ValueId> transpose(ValueId x) {
    std::vector<std::int64_t> perm(static_cast<std::size_t>(program_.shape(x).size()));
    std::iota(perm.begin(), perm.end(), 0);
    for (std::size_t i = perm.size(); i > 1; --i) std::swap(perm[i - 1], perm[random_.below(i)]);
    return made(b_.transpose(x, perm), magnitude(x));
  }

  /// New dims among the old ones, which grow where they are 1.
  std::optional<ValueId> broadcast(ValueId x) {
    const Shape& shape = program_.shape(x);
    std::vector<std::int64_t> dims;
    std::vector<std::int64_t> sizes;
    for (int dim = 0; dim < shape.size(); ++dim) {
      if (random_.one_in(3)) sizes.push_back(any_size());
      dims.push_back(static_cast<std::int64_t>(sizes.size()));
      sizes.push_back(shape[dim] == 1 && random_.one_in(2) ? any_size() : shape[dim]);
    }
    if (random_.one_in(2)) sizes.push_back(any_size());
    if (sizes.size() > 4 || Shape(sizes).num_elements() > kElementCountMax) return std::nullopt;
    return made(b_.broadcast_in_dim(x, Shape(sizes), dims), magnitude(x));
  }

  /// Pairs equal dims of two values, as batch or contracting dims.
  std::optional<ValueId> dot_general(ValueId lhs) {
    const ValueId rhs = any_value();
    const Shape& left = program_.shape(lhs);
    const Shape& right = program_.shape(rhs);
    Builder::DotDims dims;
    std::vector<bool> taken(static_cast<std::size_t>(right.size()), false);
    double terms = 1;
    std::int64_t num_elements = left.num_elements() * right.num_elements();
    for (int i = 0; i < left.size(); ++i) {
      for (int j = 0; j < right.size(); ++j) {
        if (taken[static_cast<std::size_t>(j)] || left[i] != right[j]) continue;
        const bool contract = random_.below(3) > 0;
        (contract ? dims.lhs_contracting : dims.lhs_batch).push_back(i);
        (contract ? dims.rhs_contracting : dims.rhs_batch).push_back(j);
        taken[static_cast<std::size_t>(j)] = true;
        terms *= contract ? static_cast<double>(left[i]) : 1;
        num_elements /= left[i] * (contract ? left[i] : 1);
        break;
      }
    }
    const double result = terms * magnitude(lhs) * magnitude(rhs);
    const std::size_t paired = dims.lhs_batch.size() + dims.lhs_contracting.size();
    const std::size_t rank =
        static_cast<std::size_t>(left.size() + right.size()) - paired - dims.lhs_contracting.size();
    if (rank > 4 || num_elements > kElementCountMax || result > kMagnitudeMax) return std::nullopt;
    return made(b_.dot_general(lhs, rhs, dims), result);
  }

  std::optional<ValueId> reduce(ValueId x) {
    constexpr ReduceKind kKinds[] = {ReduceKind::add, ReduceKind::add, ReduceKind::max,
                                     ReduceKind::min};
    const ReduceKind kind = kKinds[random_.below(std::size(kKinds))];
    const Shape& shape = program_.shape(x);
    std::vector<std::int64_t> dims;
    double terms = 1;
    for (int dim = 0; dim < shape.size(); ++dim) {
      if (random_.one_in(2)) continue;
      dims.push_back(dim);
      terms *= static_cast<double>(shape[dim]);
    }
    const double result = kind == ReduceKind::add ? terms * magnitude(x) : magnitude(x);
    if (result > kMagnitudeMax) return std::nullopt;
    return made(b_.reduce(kind, x, dims), result);
  }

  /// A value that fits a param is its next version.
  void add_outputs() {
    const std::uint64_t num_outputs = 1 + random_.below(3);
    std::vector<bool> updated(program_.inputs.size(), false);
    for (std::uint64_t i = 0; i < num_outputs; ++i) {
      const ValueId value = any_value();
      std::int32_t updates = -1;
      for (std::size_t input = 0; input < program_.inputs.size() && updates < 0; ++input) {
        const bool fits = program_.inputs[input].kind == InputKind::param && !updated[input] &&
                          program_.type(program_.inputs[input].value) == program_.type(value);
        if (!fits) continue;
        updates = static_cast<std::int32_t>(input);
        updated[input] = true;
      }
      const Sharding sharding = updates < 0
                                    ? any_sharding(program_.shape(value))
                                    : program_.inputs[static_cast<std::size_t>(updates)].sharding;
      program_.add_output(value, "out", sharding, updates);
    }
  }

  const Mesh& mesh_;
  Random& random_;
  Program program_;
  Builder b_{program_};
  std::vector<ValueId> values_;    // what ops may take: f32 each
  std::vector<double> magnitude_;  // by value: the largest that an element can be
};

}  // namespace

Program random_program(const Mesh& mesh, Random& random) {
  return ProgramMaker(mesh, random).run();
}

}  // namespace weft::testing
