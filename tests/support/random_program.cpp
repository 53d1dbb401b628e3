#include "tests/support/random_program.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "spmd/grad/grad.hpp"
#include "spmd/ops/builder.hpp"
#include "tests/support/custom_ops.hpp"

namespace weft::testing {
namespace {

constexpr std::int64_t kElementCountMax = 1024;
constexpr double kMagnitudeMax = 1e15;  // less than 2^50
// The limit for values that are differentiated is low, because gradients multiply them.
constexpr double kForwardMax = 1e4;
constexpr double kTwiceMax = 1e2;     // limit for values that are differentiated twice
constexpr double kExactMax = 0x1p24;  // limit for custom ops, whose kernels compute in f32

/// Optional contents of the program.
struct Extras {
  bool narrow = false;  // inputs of narrow dtypes
  bool shards = false;  // functions of shard_map
  int gradients = 0;    // how often a loss is differentiated with respect to all inputs
};

class ProgramMaker {
 public:
  ProgramMaker(const Mesh& mesh, Random& random, const Extras& extras)
      : mesh_(mesh),
        random_(random),
        extras_(extras),
        magnitude_max_(extras.gradients == 0   ? kMagnitudeMax
                       : extras.gradients == 1 ? kForwardMax
                                               : kTwiceMax) {}

  Program run() {
    constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 6, 8, 12, 16};
    for (std::int64_t& size : sizes_) size = kSizes[random_.below(std::size(kSizes))];
    const std::uint64_t num_inputs = 1 + random_.below(4);
    for (std::uint64_t i = 0; i < num_inputs; ++i) add_input();
    const std::uint64_t num_ops = 2 + random_.below(19);
    while (program_.num_ops() < num_ops) {
      if (const std::optional<ValueId> value = try_op()) values_.push_back(*value);
    }
    if (extras_.gradients > 0) {
      add_gradients();
    } else {
      add_outputs();
    }
    return std::move(program_);
  }

 private:
  /// Returns one of the program's few sizes, so that dims of different values are often equal.
  std::int64_t any_size() { return sizes_[random_.below(sizes_.size())]; }

  Shape any_shape() {
    for (;;) {
      std::vector<std::int64_t> dims(random_.below(5));
      std::ranges::generate(dims, [&] { return any_size(); });
      if (Shape(dims).num_elements() <= kElementCountMax) return Shape(dims);
    }
  }

  Sharding any_sharding(const Shape& shape) { return random_sharding(mesh_, shape, random_); }

  void add_input() {
    const Shape shape = any_shape();
    constexpr InputKind kKinds[] = {InputKind::param, InputKind::data};
    constexpr DType kNarrow[] = {DType::u8, DType::i8, DType::f16, DType::bf16};
    const bool is_narrow = extras_.narrow && random_.one_in(3);
    const DType dtype = is_narrow ? kNarrow[random_.below(4)] : DType::f32;
    const ValueId input =
        program_.add_input({dtype, shape}, kKinds[random_.below(2)], "in", any_sharding(shape));
    made(input, 2);
    values_.push_back(dtype == DType::f32 ? input : made(b_.convert(input, DType::f32), 2));
  }

  /// Often returns the newest value, so that chains get long, and seldom a scalar.
  ValueId any_value() {
    for (int i = 0; i < 3; ++i) {
      const ValueId value =
          random_.one_in(3) ? values_.back() : values_[random_.below(values_.size())];
      if (program_.shape(value).num_elements() > 1) return value;
    }
    return values_.front();
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

  /// Adds an op. Returns nullopt if the chosen op doesn't fit its operand.
  std::optional<ValueId> try_op() {
    const ValueId x = any_value();
    switch (random_.below(extras_.shards ? 34 : 32)) {
      case 0: return made(b_.unary(OpKind::negate, x), magnitude(x));
      case 1: return unary(x);
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
      case 13: return slice(x);
      case 14: return pad(x);
      case 15: return concatenate(x);
      case 16: return random_.one_in(2) ? reverse(x) : sorted(x);
      case 17: return gather(x);
      case 18: return scatter(x);
      case 19: return dynamic_slice(x);
      case 20: return drop_some(x);
      case 21:
      case 22: return convolution(x);
      case 23: return reduce_window(x);
      case 24: return select_and_scatter(x);
      case 25:
      case 26: return custom_call(x);
      case 27: return random_.one_in(3) ? while_loop(x) : loop(x);
      case 28:
      case 29: return manual_ != 0 ? loop(x) : branches(x);
      case 32:
      case 33: return shard_map(x);
      default:
        if (manual_ != 0) return collective(x);
        return made(b_.sharding_constraint(x, any_sharding(program_.shape(x))), magnitude(x));
    }
  }

  std::optional<ValueId> unary(ValueId x) {
    constexpr OpKind kKinds[] = {OpKind::abs, OpKind::sign, OpKind::stop_gradient};
    const std::size_t kinds = std::size(kKinds) - (extras_.gradients > 0 ? 1 : 0);
    return made(b_.unary(kKinds[random_.below(kinds)], x), magnitude(x));
  }

  std::optional<ValueId> binary(ValueId a) {
    constexpr OpKind kKinds[] = {OpKind::add, OpKind::subtract, OpKind::multiply, OpKind::maximum,
                                 OpKind::minimum};
    const OpKind kind = kKinds[random_.below(std::size(kKinds))];
    const ValueId b = any_value_like(a);
    const double result =
        kind == OpKind::multiply ? magnitude(a) * magnitude(b) : magnitude(a) + magnitude(b);
    if (result > magnitude_max_) return std::nullopt;
    return made(b_.binary(kind, a, b), result);
  }

  std::optional<ValueId> select(ValueId a) {
    const ValueId b = any_value_like(a);
    const ValueId predicate = b_.compare(CompareDirection::lt, b, any_value_like(a));
    return made(b_.select(predicate, a, b), std::max(magnitude(a), magnitude(b)));
  }

  /// Returns a constant with the shape of x: one number, a table or an iota.
  std::optional<ValueId> constant(ValueId x) {
    const TensorType type = program_.type(x);
    const std::uint64_t which = random_.below(3);
    if (which == 0) return made(b_.constant(static_cast<double>(random_.below(3)), type), 2);
    if (which == 1 && type.shape.size() > 0) {
      const auto dim =
          static_cast<int>(random_.below(static_cast<std::uint64_t>(type.shape.size())));
      return made(b_.iota(type, dim), static_cast<double>(type.shape[dim]));
    }
    return table(type.shape);
  }

  /// Reshapes x to dims that group the prime factors of its dims in another way.
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

  /// Gathers (take_along) or scatters (scatter_along) a value like x along the last dim, with the
  /// argsort of x as indices.
  std::optional<ValueId> sorted(ValueId x) {
    const Shape shape = program_.shape(x);
    if (shape.size() == 0) return std::nullopt;
    const ValueId order = b_.argsort(x, random_.one_in(2));
    const ValueId other = any_value_like(x);
    if (random_.one_in(2)) return made(b_.take_along(other, order), magnitude(other));
    const std::int64_t size = shape[shape.size() - 1] + 1;
    return made(b_.scatter_along(order, other, size), magnitude(other));
  }

  std::optional<ValueId> transpose(ValueId x) {
    return made(b_.transpose(x, any_order(program_.shape(x).size())), magnitude(x));
  }

  /// Slices x, mostly in one dim.
  std::optional<ValueId> slice(ValueId x) {
    const Shape& shape = program_.shape(x);
    std::vector<std::int64_t> start;
    std::vector<std::int64_t> limit;
    std::vector<std::int64_t> stride;
    for (const std::int64_t size : shape) {
      const bool whole = size < 2 || !random_.one_in(2);
      start.push_back(whole ? 0 : any_below(size));
      limit.push_back(whole ? size : start.back() + 1 + any_below(size - start.back()));
      stride.push_back(whole ? 1 : 1 + any_below(3));
    }
    return made(b_.slice(x, start, limit, stride), magnitude(x));
  }

  std::optional<ValueId> pad(ValueId x) {
    std::array<std::vector<std::int64_t>, 3> counts;
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : program_.shape(x)) {
      const bool grows = random_.one_in(2);
      for (auto& list : counts) list.push_back(grows ? any_below(3) : 0);
      sizes.push_back(size + counts[0].back() + counts[1].back() + (size - 1) * counts[2].back());
    }
    if (Shape(sizes).num_elements() > kElementCountMax) return std::nullopt;
    const ValueId padding = b_.constant(static_cast<double>(random_.below(3)), {DType::f32, {}});
    const ValueId value = b_.pad(x, padding, counts[0], counts[1], counts[2]);
    return made(value, std::max(magnitude(x), 2.0));
  }

  std::optional<ValueId> concatenate(ValueId x) {
    const Shape& shape = program_.shape(x);
    if (shape.size() == 0) return std::nullopt;
    const auto dim = static_cast<int>(any_below(shape.size()));
    std::vector<ValueId> parts = {x};
    double largest = magnitude(x);
    std::int64_t elements = shape.num_elements();
    for (const ValueId value : values_) {
      Shape other = program_.shape(value);
      if (other.size() != shape.size() || !random_.one_in(2)) continue;
      other[dim] = shape[dim];
      if (other != shape) continue;
      elements += program_.shape(value).num_elements();
      if (elements > kElementCountMax) break;
      parts.push_back(value);
      largest = std::max(largest, magnitude(value));
    }
    return made(b_.concatenate(parts, dim), largest);
  }

  std::optional<ValueId> reverse(ValueId x) {
    std::vector<std::int64_t> dims;
    for (int dim = 0; dim < program_.shape(x).size(); ++dim) {
      if (random_.one_in(2)) dims.push_back(dim);
    }
    return made(b_.reverse(x, dims), magnitude(x));
  }

  /// Returns integers; some are valid row numbers. They are an input with any sharding, a constant,
  /// or the result of an op.
  ValueId any_index(const Shape& shape) {
    const TensorType type{DType::i32, shape};
    if (random_.one_in(3))
      return program_.add_input(type, InputKind::data, "in", any_sharding(shape));
    if (random_.one_in(2)) {
      std::vector<std::int32_t> table(static_cast<std::size_t>(shape.num_elements()));
      std::ranges::generate(table, [&] { return static_cast<std::int32_t>(any_below(20)) - 2; });
      return b_.constant(std::as_bytes(std::span(table)), type);
    }
    for (int i = 0; i < 4; ++i) {
      const ValueId value = values_[random_.below(values_.size())];
      if (program_.shape(value) == shape) return b_.convert(value, DType::i32);
    }
    return shape.size() > 0 ? b_.iota(type, static_cast<int>(any_below(shape.size())))
                            : b_.constant(static_cast<double>(any_below(5)) - 1, type);
  }

  std::optional<ValueId> gather(ValueId table) {
    const Shape& rows = program_.shape(table);
    std::vector<std::int64_t> dims(random_.below(3));
    std::ranges::generate(dims, [&] { return any_size(); });
    const Shape index(dims);
    if (rows.size() == 0 || rows.size() + index.size() > 5 ||
        index.num_elements() * rows.num_elements() / rows[0] > kElementCountMax) {
      return std::nullopt;
    }
    return made(b_.gather(table, any_index(index)), magnitude(table));
  }

  std::optional<ValueId> scatter(ValueId updates) {
    const Shape& shape = program_.shape(updates);
    const auto num_dims = static_cast<std::size_t>(any_below(std::min(shape.size(), 2) + 1));
    const Shape index(std::span<const std::int64_t>(shape).first(num_dims));
    const std::int64_t rows = any_size();
    const double result = magnitude(updates) * static_cast<double>(index.num_elements());
    if (result > magnitude_max_ || shape.size() - index.size() >= kDimCountMax ||
        shape.num_elements() / index.num_elements() * rows > kElementCountMax) {
      return std::nullopt;
    }
    const ValueId indices = any_index(index);
    return made(b_.scatter(indices, updates, rows), result);
  }

  /// Takes a part of x; in half of the cases writes it to another place of a similar value.
  std::optional<ValueId> dynamic_slice(ValueId x) {
    std::vector<std::int64_t> sizes;
    std::vector<ValueId> starts;
    std::vector<ValueId> other_starts;
    for (const std::int64_t size : program_.shape(x)) {
      sizes.push_back(random_.one_in(2) ? size : 1 + any_below(size));
    }
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
      starts.push_back(any_index({}));
      other_starts.push_back(any_index({}));
    }
    const ValueId part = made(b_.dynamic_slice(x, starts, sizes), magnitude(x));
    if (random_.one_in(2)) return part;
    const ValueId whole = any_value_like(x);
    return made(b_.dynamic_update_slice(whole, part, other_starts),
                std::max(magnitude(x), magnitude(whole)));
  }

  /// Sets the elements of x to zero at which random bits say so, like dropout.
  std::optional<ValueId> drop_some(ValueId x) {
    std::array<std::uint32_t, 4> words{};
    std::ranges::generate(words, [&] { return static_cast<std::uint32_t>(random_.below(1000)); });
    const ValueId state = b_.constant(std::as_bytes(std::span(words)), {DType::u32, {4}});
    const TensorType bits{DType::u32, program_.shape(x)};
    const ValueId keeps = b_.compare(CompareDirection::ge, b_.rng_bit_generator(state, bits.shape),
                                     b_.constant(0x40000000, bits));
    return made(b_.select(keeps, x, b_.constant(0, program_.type(x))), magnitude(x));
  }

  /// Adds a loop over the parts of a value, with up to two carries. Its body has a few ops, which
  /// may include another loop.
  std::optional<ValueId> loop(ValueId x) {
    const Shape shape = program_.shape(x);
    const bool has_items = shape.size() > 0 && shape[0] <= 4;
    const std::int64_t length = has_items ? shape[0] : 1 + any_below(3);
    if (depth_ == 2 || magnitude(x) > magnitude_max_ / 64) return std::nullopt;
    const std::size_t outside = values_.size();
    std::vector<ValueId> first;
    for (std::uint64_t i = random_.below(3); i > 0; --i) {
      const ValueId value = any_value();
      first.push_back(carried(value, magnitude(value)));
    }
    if (!has_items && first.empty()) return std::nullopt;
    ++depth_;
    sums_.push_back(kNoId);
    const bool sums = random_.one_in(2);
    const ValueId zeros = sums ? carried(b_.constant(0, program_.type(any_value())), 0) : kNoId;
    const ValueId number = made(b_.loop(length, random_.one_in(2)), 4);
    std::vector<ValueId> carries;
    for (const ValueId value : first) {
      const double bound = std::max(magnitude(value), 4.0);
      carries.push_back(made(b_.border(OpKind::carry, {number, value}), bound));
    }
    values_.insert(values_.end(), carries.begin(), carries.end());
    if (sums) sums_.back() = made(b_.border(OpKind::carry, {number, zeros}), 0);
    if (has_items) {
      values_.push_back(made(b_.border(OpKind::item, {number, x}), magnitude(x)));
    } else {
      values_.push_back(made(b_.convert(number, DType::f32), 4));
    }
    any_ops(6);
    const std::vector<ValueId> results = end_loop(number, length, carries);
    --depth_;
    sums_.pop_back();
    values_.resize(outside);
    values_.insert(values_.end(), results.begin(), results.end() - 1);
    return results.back();
  }

  /// Returns the value as a carry. In a function of shard_map, marks the carry as different on all
  /// chips.
  ValueId carried(ValueId value, double magnitude) {
    const ManualAtoms differs{.manual = manual_, .varies = manual_};
    return made(manual_ == 0 ? value : b_.like(value, differs), magnitude);
  }

  void any_ops(std::int64_t most) {
    const std::uint32_t ops = program_.num_ops() + 1 + static_cast<std::uint32_t>(any_below(most));
    while (program_.num_ops() < ops) {
      if (const std::optional<ValueId> value = try_op()) values_.push_back(*value);
    }
  }

  /// Returns a predicate: whether some element of x is less than that of a similar value.
  ValueId any_predicate(ValueId x) {
    const ValueId less = b_.compare(CompareDirection::lt, x, any_value_like(x));
    const std::vector<std::int64_t> dims = any_order(program_.shape(x).size());
    return dims.empty() ? less : b_.reduce(ReduceKind::max, less, dims);
  }

  /// Adds a while loop, which ends after at most three iterations, or earlier if a carry meets a
  /// condition.
  std::optional<ValueId> while_loop(ValueId x) {
    if (manual_ != 0 || depth_ == 2 || magnitude(x) > magnitude_max_ / 64) return std::nullopt;
    if (extras_.gradients > 0) return std::nullopt;  // a while loop has no gradient
    const std::size_t outside = values_.size();
    ++depth_;
    sums_.push_back(kNoId);
    const ValueId number = made(b_.loop(0, false), 4);
    const ValueId carry = made(b_.border(OpKind::carry, {number, x}), std::max(magnitude(x), 4.0));
    values_.push_back(carry);
    const ValueId most = b_.constant(static_cast<double>(any_below(4)), {DType::i32, {}});
    const ValueId counts = b_.compare(CompareDirection::lt, number, most);
    const bool looks = random_.one_in(2);
    b_.border(
        OpKind::test,
        {number, looks ? b_.binary(OpKind::logical_and, counts, any_predicate(carry)) : counts});
    any_ops(4);
    const std::vector<ValueId> results = end_loop(number, 0, {carry});
    --depth_;
    sums_.pop_back();
    values_.resize(outside);
    return results.back();
  }

  /// Adds two branches of a few ops each, which use up to three outside values.
  std::optional<ValueId> branches(ValueId x) {
    // In a shard_map, chips may take different branches, but must run the same collectives.
    if (manual_ != 0 || depth_ == 3) return std::nullopt;
    const std::size_t outside = values_.size();
    ++depth_;
    const ValueId cond = b_.cond(any_predicate(x));
    any_ops(5);
    const std::vector<ValueId> first(values_.end() - 1 - any_below(2), values_.end());
    values_.resize(outside);
    b_.border(OpKind::otherwise, {cond});
    std::vector<std::pair<ValueId, ValueId>> pairs;
    for (const ValueId value : first) {
      values_.resize(outside);
      if (random_.one_in(2)) any_ops(4);
      const ValueId other = values_.back();
      const bool fits = program_.type(other) == program_.type(value);
      pairs.emplace_back(value, fits ? other : filled(program_.shape(value)));
    }
    values_.resize(outside);
    --depth_;
    for (const auto& [a, b] : pairs) {
      const ValueId merge = b_.border(OpKind::merge, {cond, a, b});
      values_.push_back(made(merge, std::max(magnitude(a), magnitude(b))));
    }
    const ValueId last = values_.back();
    values_.pop_back();
    return last;
  }

  ValueId filled(const Shape& shape) {
    return made(b_.constant(static_cast<double>(random_.below(3)), {DType::f32, shape}), 2);
  }

  /// Ends a loop. A carry's next value is any value of its type, clamped to the bounds of its
  /// initial value.
  std::vector<ValueId> end_loop(ValueId number, std::int64_t length,
                                const std::vector<ValueId>& carries) {
    std::vector<ValueId> nexts;
    for (const ValueId carry : carries) {
      const ValueId like = any_value_like(carry);
      const ValueId value = carried(like, magnitude(like));
      const TensorType type = program_.type(carry);
      nexts.push_back(value);
      if (magnitude(value) <= magnitude(carry)) continue;
      const ValueId most = b_.constant(magnitude(carry), type);
      const ValueId least = b_.constant(-magnitude(carry), type);
      const ValueId bounded = b_.binary(OpKind::minimum, value, most);
      nexts.back() = made(b_.binary(OpKind::maximum, bounded, least), magnitude(carry));
    }
    std::vector<ValueId> results;
    const ValueId sum = sums_.back();
    ValueId total = kNoId;
    if (sum != kNoId) {
      // Adds the newest value that fits, which was most likely computed in the loop, to the sum.
      const auto fits = std::find_if(values_.rbegin(), values_.rend(), [&](ValueId value) {
        return program_.type(value) == program_.type(sum) &&
               magnitude(value) * static_cast<double>(length) <= magnitude_max_;
      });
      const bool has = fits != values_.rend();
      total = has ? b_.binary(OpKind::add, sum, *fits) : sum;
      total = carried(total, has ? magnitude(*fits) * static_cast<double>(length) : 0);
    }
    const auto stack = [&](ValueId value) {
      results.push_back(made(b_.border(OpKind::stack, {number, value}), magnitude(value)));
    };
    if (extras_.gradients > 0) stack_residuals(b_, number);
    const ValueId newest = values_.back();
    if (length > 0 && program_.shape(newest).size() < 4 &&
        program_.shape(newest).num_elements() * length <= kElementCountMax) {
      stack(newest);
    }
    for (std::size_t i = 0; i < carries.size(); ++i) {
      const ValueId next = b_.border(OpKind::next, {number, carries[i], nexts[i]});
      results.push_back(made(next, magnitude(carries[i])));
    }
    if (sum != kNoId) {
      results.push_back(made(b_.border(OpKind::next, {number, sum, total}), magnitude(total)));
    }
    if (results.empty()) stack(made(b_.convert(number, DType::f32), 4));
    return results;
  }

  /// Returns some of the mask's atoms, at least one, in random order.
  AtomList some_atoms(AtomMask mask) {
    AtomList atoms;
    const AtomList all = mesh_.list(mask);
    for (int i = 0; i < all.size(); ++i) {
      if (random_.one_in(2)) atoms.push_back(all[i]);
    }
    return atoms.empty() ? AtomList{all[static_cast<int>(any_below(all.size()))]} : atoms;
  }

  std::vector<std::int64_t> border(const std::vector<AtomList>& dims) const {
    std::vector<std::int64_t> attrs{static_cast<std::int64_t>(mesh_.list(manual_).bits())};
    for (const AtomList atoms : dims) attrs.push_back(static_cast<std::int64_t>(atoms.bits()));
    return attrs;
  }

  /// Returns each chip's part of a value that is sharded over some of the manual atoms.
  ValueId entered(ValueId x) {
    const Shape shape = program_.shape(x);
    std::vector<AtomList> dims(static_cast<std::size_t>(shape.size()));
    const AtomList all = mesh_.list(manual_);
    for (int i = 0; i < all.size(); ++i) {
      if (dims.empty() || random_.one_in(4)) continue;
      const std::size_t dim = random_.below(dims.size());
      AtomList longer = dims[dim];
      longer.push_back(all[i]);
      if (shape[static_cast<int>(dim)] % mesh_.count(longer) == 0) dims[dim] = longer;
    }
    return made(b_.enter(x, border(dims)), magnitude(x));
  }

  /// Returns the global value of x, which differs between chips in a shard_map. Over each atom on
  /// which x depends, a dim becomes sharded or, if that is impossible, the maximum of the chips is
  /// taken.
  ValueId left(ValueId x) {
    const double most = magnitude(x);
    std::vector<AtomList> dims(static_cast<std::size_t>(program_.shape(x).size()));
    const AtomList varies = mesh_.list(b_.manual(x).varies);
    std::int64_t size = program_.shape(x).num_elements();
    for (int i = 0; i < varies.size(); ++i) {
      size *= mesh_.atom_size(varies[i]);
      if (dims.empty() || size > kElementCountMax) {
        size /= mesh_.atom_size(varies[i]);
        x = b_.all_reduce(mesh_, x, AtomList{varies[i]}, ReduceKind::max);
      } else {
        dims[random_.below(dims.size())].push_back(varies[i]);
      }
    }
    return made(b_.leave(x, border(dims)), most);
  }

  /// Adds a shard_map of one or two values. Its function applies a few ops to them and to other
  /// values, and returns the newest result.
  std::optional<ValueId> shard_map(ValueId x) {
    if (manual_ != 0 || mesh_.num_atoms() == 0) return std::nullopt;
    manual_ = some_atoms(mesh_.all_atoms()).mask();
    const std::size_t outside = values_.size();
    const ValueId other = any_value();
    values_.push_back(entered(x));
    if (random_.one_in(2)) values_.push_back(entered(other));
    const std::uint32_t ops = program_.num_ops() + 2 + static_cast<std::uint32_t>(any_below(8));
    while (program_.num_ops() < ops) {
      if (const std::optional<ValueId> value = try_op()) values_.push_back(*value);
    }
    const auto newest = std::find_if(values_.rbegin(), values_.rend(), [&](ValueId value) {
      return b_.manual(value).manual == manual_;
    });
    const ValueId result = left(*newest);
    values_.resize(outside);
    manual_ = 0;
    return result;
  }

  std::optional<ValueId> collective(ValueId x) {
    const AtomList atoms = some_atoms(manual_);
    const std::int64_t chips = mesh_.count(atoms);
    const Shape shape = program_.shape(x);
    const double sum = magnitude(x) * static_cast<double>(chips);
    const auto kind = random_.below(5);
    if (kind == 0) {
      if (sum > magnitude_max_) return std::nullopt;
      return made(b_.all_reduce(mesh_, x, atoms, ReduceKind::add), sum);
    }
    if (kind == 1) {
      std::vector<int> sources;
      for (int chip = 0; chip < chips; ++chip) sources.push_back(chip);
      for (std::size_t i = sources.size(); i > 1; --i) {
        std::swap(sources[i - 1], sources[random_.below(i)]);
      }
      return made(b_.ppermute(mesh_, x, atoms, sources), magnitude(x));
    }
    if (shape.size() == 0) return std::nullopt;
    const auto dim = static_cast<int>(any_below(shape.size()));
    const auto other = static_cast<int>(any_below(shape.size()));
    if (kind == 2) {
      if (shape.num_elements() * chips > kElementCountMax) return std::nullopt;
      return made(b_.all_gather(mesh_, x, atoms, dim), magnitude(x));
    }
    if (shape[dim] % chips != 0) return std::nullopt;
    if (kind == 3) {
      if (sum > magnitude_max_) return std::nullopt;
      return made(b_.reduce_scatter(mesh_, x, atoms, ReduceKind::add, dim), sum);
    }
    if (dim == other) return std::nullopt;
    return made(b_.all_to_all(mesh_, x, atoms, dim, other), magnitude(x));
  }

  ValueId table(const Shape& shape) {
    std::vector<float> elements(static_cast<std::size_t>(shape.num_elements()));
    std::ranges::generate(elements, [&] { return static_cast<float>(random_.below(3)); });
    return made(b_.constant(std::as_bytes(std::span(elements)), {DType::f32, shape}), 2);
  }

  std::vector<std::int64_t> any_order(int num_dims) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(num_dims));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
    return order;
  }

  /// Adds a convolution of lhs. Its weights are a value of the program that fits, or else a table.
  std::optional<ValueId> convolution(ValueId lhs) {
    const Shape left = program_.shape(lhs);
    if (left.size() < 3) return std::nullopt;
    Convolution c{.lhs = any_order(left.size()),
                  .rhs = any_order(left.size()),
                  .result = any_order(left.size()),
                  .window = std::vector<WindowDim>(static_cast<std::size_t>(left.size() - 2)),
                  .reversed = random_.one_in(2)};
    if (left.size() > 3 && random_.one_in(3)) {
      for (auto* side : {&c.lhs, &c.rhs, &c.result}) {
        c.group.push_back(side->back());
        side->pop_back();
      }
      c.window.pop_back();
    }
    const auto size = [](const Shape& shape, std::int64_t dim) {
      return shape[static_cast<int>(dim)];
    };
    ValueId rhs = any_value();
    const Shape& right = program_.shape(rhs);
    if (right.size() != left.size() || size(right, c.rhs[0]) != size(left, c.lhs[1]) ||
        (!c.group.empty() && size(right, c.group[1]) != size(left, c.group[0]))) {
      Shape shape = left;
      for (int dim = 0; dim < shape.size(); ++dim) shape[dim] = 1 + any_below(3);
      shape[static_cast<int>(c.rhs[0])] = size(left, c.lhs[1]);
      if (!c.group.empty()) shape[static_cast<int>(c.group[1])] = size(left, c.group[0]);
      rhs = table(shape);
    }
    double terms = static_cast<double>(size(left, c.lhs[1]));
    std::int64_t elements = size(left, c.lhs[0]) * size(program_.shape(rhs), c.rhs[1]) *
                            (c.group.empty() ? 1 : size(left, c.group[0]));
    for (std::size_t i = 0; i < c.window.size(); ++i) {
      const std::int64_t window = size(program_.shape(rhs), c.rhs[2 + i]);
      c.window[i] = {.size = window,
                     .stride = 1 + any_below(3),
                     .low = any_below(4) - 1,
                     .high = any_below(4) - 1,
                     .base_dilation = 1 + any_below(4) / 3,
                     .dilation = 1 + any_below(4) / 3};
      terms *= static_cast<double>(window);
      elements *= window_count(c.window[i], size(left, c.lhs[2 + i]));
    }
    const double result = terms * magnitude(lhs) * magnitude(rhs);
    if (elements == 0 || elements > kElementCountMax || result > magnitude_max_)
      return std::nullopt;
    return made(b_.convolution(lhs, rhs, c), result);
  }

  /// Returns random windows for a reduction. Each window of a maximum contains an element, because
  /// the maximum of no elements is infinite.
  std::optional<WindowReduction> any_windows(const Shape& shape, ReduceKind kind) {
    WindowReduction reduction{kind};
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) {
      WindowDim& window = reduction.dims.emplace_back();
      if (random_.one_in(2)) {
        window = {.size = 1 + any_below(3), .stride = 1 + any_below(3)};
        window.low = any_below(window.size);
        window.high = any_below(window.size);
        if (kind == ReduceKind::add) {
          window.base_dilation = 1 + any_below(2);
          window.dilation = 1 + any_below(2);
        }
      }
      elements *= window_count(window, size);
    }
    if (elements == 0 || elements > kElementCountMax) return std::nullopt;
    return reduction;
  }

  static double terms(const WindowReduction& reduction) {
    double product = 1;
    for (const WindowDim& window : reduction.dims) product *= static_cast<double>(window.size);
    return product;
  }

  std::optional<ValueId> reduce_window(ValueId x) {
    constexpr ReduceKind kKinds[] = {ReduceKind::add, ReduceKind::max, ReduceKind::min};
    const auto reduction = any_windows(program_.shape(x), kKinds[random_.below(3)]);
    if (!reduction) return std::nullopt;
    const double result =
        reduction->kind == ReduceKind::add ? terms(*reduction) * magnitude(x) : magnitude(x);
    if (result > magnitude_max_) return std::nullopt;
    return made(b_.reduce_window(x, *reduction), result);
  }

  /// Adds a select_and_scatter on x, whose source is a reduce_window or a table.
  std::optional<ValueId> select_and_scatter(ValueId x) {
    const ReduceKind kind = random_.one_in(2) ? ReduceKind::max : ReduceKind::min;
    const auto reduction = any_windows(program_.shape(x), kind);
    if (!reduction) return std::nullopt;
    const ValueId like = any_value_like(x);
    const double result = terms(*reduction) * std::max(magnitude(like), 2.0);
    if (result > magnitude_max_) return std::nullopt;
    const ValueId windows = made(b_.reduce_window(like, *reduction), magnitude(like));
    const ValueId y = random_.one_in(2) ? windows : table(program_.shape(windows));
    return made(b_.select_and_scatter(x, y, *reduction), result);
  }

  std::int64_t any_below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(bound)));
  }

  /// Broadcasts x: inserts new dims among its dims, and enlarges dims of size 1.
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

  /// Adds a dot_general that pairs equal dims of two values as batch or contracting dims.
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
        if (taken[static_cast<std::size_t>(j)] || left[i] != right[j] || random_.one_in(3))
          continue;
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
    if (rank > 4 || num_elements > kElementCountMax || result > magnitude_max_) return std::nullopt;
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
      if (random_.below(3) > 0) continue;
      dims.push_back(dim);
      terms *= static_cast<double>(shape[dim]);
    }
    const double result = kind == ReduceKind::add ? terms * magnitude(x) : magnitude(x);
    if (result > magnitude_max_) return std::nullopt;
    return made(b_.reduce(kind, x, dims), result);
  }

  std::optional<ValueId> custom_call(ValueId x) {
    const TensorType type = program_.type(x);
    const int num_dims = type.shape.size();
    if (num_dims == 0 || extras_.gradients > 0) return std::nullopt;
    const std::int64_t row = type.shape[num_dims - 1];
    switch (random_.below(3)) {
      case 0: {
        const CustomTarget target = custom_target(CustomKind::affine, num_dims);
        if (2 * magnitude(x) + 3 > kExactMax) return std::nullopt;
        return made(b_.custom_call(target, std::array{x, table({row})}, type),
                    2 * magnitude(x) + 3);
      }
      case 1: {
        const double result = magnitude(x) * static_cast<double>(row);
        if (result > kExactMax) return std::nullopt;
        const CustomTarget target = custom_target(CustomKind::prefix_sum, num_dims);
        return made(b_.custom_call(target, std::array{x}, type), result);
      }
      default: {
        const double result = (magnitude(x) * magnitude(x) + 1) * static_cast<double>(row);
        if (result > kExactMax) return std::nullopt;
        const Shape rows(std::span(type.shape.begin(), type.shape.end() - 1));
        const CustomTarget target = custom_target(CustomKind::square_sum, num_dims);
        return made(b_.custom_call(target, std::array{x}, {type.dtype, rows}), result);
      }
    }
  }

  /// Adds the gradients of a weighted sum of all values that no op uses.
  void add_gradients() {
    std::vector<bool> used(program_.num_values(), false);
    for (const ValueId operand : program_.operands) used[operand] = true;
    std::vector<ValueId> wrt;
    for (const ProgramInput& input : program_.inputs) {
      if (is_floating(program_.type(input.value).dtype)) wrt.push_back(input.value);
    }
    std::vector<ValueId> summed;
    std::ranges::copy_if(values_, std::back_inserter(summed),
                         [&](ValueId value) { return !used[value]; });
    const ValueId loss = weighted_sum(summed);
    std::vector<ValueId> gradients = grad(b_, loss, wrt);
    if (extras_.gradients == 2) {
      const std::vector<ValueId> second = grad(b_, weighted_sum(gradients), wrt);
      gradients.insert(gradients.end(), second.begin(), second.end());
    }
    program_.add_output(loss, "loss", {});
    for (const ValueId gradient : gradients) {
      program_.add_output(gradient, "gradient", any_sharding(program_.shape(gradient)));
    }
  }

  ValueId weighted_sum(const std::vector<ValueId>& values) {
    ValueId sum = b_.constant(0, {DType::f32, {}});
    for (const ValueId value : values) {
      const Shape shape = program_.shape(value);
      const ValueId weighted = b_.binary(OpKind::multiply, value, table(shape));
      sum = b_.binary(OpKind::add, sum, total(weighted));
    }
    return sum;
  }

  ValueId total(ValueId x) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(program_.shape(x).size()));
    std::iota(dims.begin(), dims.end(), 0);
    return dims.empty() ? x : b_.reduce(ReduceKind::add, x, dims);
  }

  /// Adds half of the values that no op uses, and always the newest value, as outputs.
  void add_outputs() {
    std::vector<bool> used(program_.num_values(), false);
    for (const ValueId operand : program_.operands) used[operand] = true;
    std::vector<bool> updated(program_.inputs.size(), false);
    for (const ValueId value : values_) {
      if (value == values_.back() || (!used[value] && random_.one_in(2))) {
        add_output(value, updated);
      }
    }
    if (random_.one_in(4)) add_output(any_value(), updated);
  }

  /// Adds an output. It updates a parameter of its type, if there is one without an update.
  void add_output(ValueId value, std::vector<bool>& updated) {
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      const ProgramInput& input = program_.inputs[i];
      if (input.kind != InputKind::param || updated[i]) continue;
      if (program_.type(input.value) != program_.type(value)) continue;
      updated[i] = true;
      program_.add_output(value, "out", input.sharding, static_cast<std::int32_t>(i));
      return;
    }
    program_.add_output(value, "out", any_sharding(program_.shape(value)));
  }

  const Mesh& mesh_;
  Random& random_;
  const Extras extras_;
  const double magnitude_max_;
  std::array<std::int64_t, 3> sizes_{};
  Program program_;
  Builder b_{program_, &mesh_};
  std::vector<ValueId> values_;    // values that the next op may use, all f32
  std::vector<ValueId> sums_;      // for each enclosing loop: a carry that is a sum, or kNoId
  int depth_ = 0;                  // the number of enclosing loops
  AtomMask manual_ = 0;            // the atoms of the enclosing shard_map
  std::vector<double> magnitude_;  // by value: the largest possible magnitude of an element
};

}  // namespace

Sharding random_sharding(const Mesh& mesh, const Shape& shape, Random& random) {
  Sharding sharding;
  std::vector<Atom> atoms(static_cast<std::size_t>(mesh.num_atoms()));
  std::iota(atoms.begin(), atoms.end(), Atom{1});
  for (std::size_t i = atoms.size(); i > 1; --i) std::swap(atoms[i - 1], atoms[random.below(i)]);
  const int priority = static_cast<int>(random.below(3));
  for (const Atom atom : atoms) {
    if (shape.size() == 0 || random.one_in(3)) continue;
    const auto dim = random.below(static_cast<std::uint64_t>(shape.size()));
    const std::int64_t parts = mesh.count(sharding.dims[dim]) * mesh.atom_size(atom);
    if (shape[static_cast<int>(dim)] % parts != 0 && !random.one_in(8)) continue;
    sharding.dims[dim].push_back(atom);
    sharding.set_priority(atom, priority);
  }
  if (random.one_in(2)) sharding.open_mask = Sharding::open(shape.size()).open_mask;
  return random.one_in(4) ? Sharding::open(shape.size()) : sharding;
}

Program random_program(const Mesh& mesh, Random& random) {
  return ProgramMaker(mesh, random, {}).run();
}

Program random_program_of_narrow(const Mesh& mesh, Random& random) {
  return ProgramMaker(mesh, random, {.narrow = true}).run();
}

Program random_program_of_shards(const Mesh& mesh, Random& random) {
  return ProgramMaker(mesh, random, {.shards = true}).run();
}

Program random_program_of_gradients(const Mesh& mesh, Random& random) {
  return ProgramMaker(mesh, random, {.shards = true, .gradients = 1}).run();
}

Program random_program_of_second_gradients(const Mesh& mesh, Random& random) {
  return ProgramMaker(mesh, random, {.shards = true, .gradients = 2}).run();
}

std::vector<Elements> small_integers(const Program& program, Random& random) {
  std::vector<Elements> inputs;
  for (const ProgramInput& input : program.inputs) {
    Elements& elements = inputs.emplace_back();
    const DType dtype = program.type(input.value).dtype;
    for (std::int64_t i = 0; i < program.type(input.value).num_elements(); ++i) {
      elements.push_back(dtype == DType::pred ? random.one_in(2)
                         : dtype == DType::u8 ? static_cast<double>(random.below(3))
                                              : static_cast<double>(random.below(5)) - 2);
    }
  }
  return inputs;
}

}  // namespace weft::testing
