/// attention and attention_grad, in tiles of queries and keys, so that the matrix of all queries by
/// all keys never exists (FlashAttention: T. Dao et al., 2022).

#include <algorithm>
#include <array>
#include <vector>

#include "actors/device/cpu/kernels/through_f32.hpp"
#include "actors/device/cpu/loops/arithmetic.hpp"
#include "actors/device/cpu/loops/element.hpp"
#include "actors/device/cpu/loops/math.hpp"
#include "actors/device/cpu/loops/prepares.hpp"
#include "actors/device/cpu/loops/run_sum.hpp"
#include "actors/device/cpu/loops/vectorize.hpp"
#include "actors/device/cpu/onednn/matmul.hpp"
#include "spmd/ops/attribute_views.hpp"

namespace weft::kernels {
namespace {

/// A tile of scores then has 64 KiB in f32, which leaves level-2 cache for its keys and values.
constexpr std::int64_t kQueryTile = 64;
constexpr std::int64_t kKeyTile = 256;

/// A range of a head's queries or keys.
struct Tile {
  std::int64_t begin;
  std::int64_t size;
};

/// Products [m, k] x [k, n] for all tile sizes: full tiles of queries and of keys, and the rests.
class TileProduct {
 public:
  /// `matmul(queries, keys)` describes the product for a tile of these sizes.
  template <typename MatmulOf>
  TileProduct(std::int64_t queries, std::int64_t keys, DType dtype, const ChipContext& chip,
              MatmulOf matmul) {
    for (const std::int64_t rows : {std::min(queries, kQueryTile), queries % kQueryTile}) {
      for (const std::int64_t columns : {std::min(keys, kKeyTile), keys % kKeyTile}) {
        functions_.push_back(rows == 0 || columns == 0
                                 ? MatmulFunction()
                                 : prepare_matmul(matmul(rows, columns), dtype, chip));
      }
    }
    first_query_size_ = std::min(queries, kQueryTile);
    first_key_size_ = std::min(keys, kKeyTile);
  }

  template <typename C>
  void operator()(Tile queries, Tile keys, const C* lhs, const C* rhs, C* result) const {
    const std::size_t row = queries.size == first_query_size_ ? 0 : 2;
    const std::size_t column = keys.size == first_key_size_ ? 0 : 1;
    functions_[row + column](reinterpret_cast<const std::byte*>(lhs),
                             reinterpret_cast<const std::byte*>(rhs),
                             reinterpret_cast<std::byte*>(result));
  }

 private:
  std::vector<MatmulFunction> functions_;
  std::int64_t first_query_size_ = 0;
  std::int64_t first_key_size_ = 0;
};

Matmul::Operand rows_of(std::int64_t stride) { return {.batch = {}, .row = stride, .column = 1}; }
Matmul::Operand columns_of(std::int64_t stride) {
  return {.batch = {}, .row = 1, .column = stride};
}

struct Sizes {
  std::int64_t heads, queries, keys, key_size, value_size;
};

/// The common part of forward and backward. C: float or double.
template <typename C>
class Tiles {
 public:
  Tiles(const Sizes& sizes, const AttentionForm& form, std::int64_t first_query, DType dtype,
        const ChipContext& chip)
      : sizes_(sizes),
        scale_(static_cast<C>(form.scale)),
        causal_(form.causal),
        first_query_(first_query),
        scores_(sizes.queries, sizes.keys, dtype, chip,
                [&](std::int64_t queries, std::int64_t keys) {
                  return Matmul{.batch = {},
                                .m = queries,
                                .n = keys,
                                .k = sizes.key_size,
                                .lhs = rows_of(sizes.key_size),
                                .rhs = columns_of(sizes.key_size)};
                }),
        to_queries_(sizes.queries, sizes.keys, dtype, chip,
                    [&](std::int64_t queries, std::int64_t keys) {
                      return Matmul{.batch = {},
                                    .m = queries,
                                    .n = sizes.value_size,
                                    .k = keys,
                                    .lhs = rows_of(keys),
                                    .rhs = rows_of(sizes.value_size)};
                    }) {}

 protected:
  /// Calls body(tile) for the tiles of queries of a head.
  template <typename Body>
  void for_queries(Body body) const {
    for (std::int64_t i = 0; i < sizes_.queries; i += kQueryTile) {
      body(Tile{i, std::min(kQueryTile, sizes_.queries - i)});
    }
  }
  /// Calls body(tile) for the tiles of keys that some of the queries see.
  template <typename Body>
  void for_keys(Tile queries, Body body) const {
    const std::int64_t end = visible(queries.begin + queries.size - 1, {0, sizes_.keys});
    for (std::int64_t j = 0; j < end; j += kKeyTile) {
      body(Tile{j, std::min(kKeyTile, sizes_.keys - j)});
    }
  }
  /// How many keys of the tile query i sees. They are the first ones of the tile.
  std::int64_t visible(std::int64_t i, Tile keys) const {
    if (!causal_) return keys.size;
    return std::clamp<std::int64_t>(first_query_ + i + 1 - keys.begin, 0, keys.size);
  }
  /// Scales the visible part of a row of q k^T; returns its maximum.
  C scale_row(C* row, std::int64_t count) const {
    for (std::int64_t c = 0; c < count; ++c) row[c] *= scale_;
    return combine_run(row, count, lowest<C>(), Maximum{});
  }
  /// Replaces scores by e^(score - top), or 0 for invisible keys; returns their sum.
  static C power_row(C* row, std::int64_t count, std::int64_t size, C top) {
    for (std::int64_t c = 0; c < count; ++c) row[c] = Exponential{}(row[c] - top);
    std::fill(row + count, row + size, C{0});
    return combine_run(row, count, C{0}, Add{});
  }
  static void add_to(C* total, const C* part, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) total[i] += part[i];
  }

  Sizes sizes_;
  C scale_;
  bool causal_;
  std::int64_t first_query_;
  TileProduct scores_;      ///< q k^T, [queries, keys]
  TileProduct to_queries_;  ///< [queries, keys] x [keys, value size]
};

/// Keeps each query's running maximum and sum. Rescales earlier results when the maximum changes.
template <typename C>
class Forward : public Tiles<C> {
 public:
  using Tiles<C>::Tiles;

  std::size_t scratch_bytes() const {
    return static_cast<std::size_t>(kQueryTile * (kKeyTile + this->sizes_.value_size + 2)) *
           sizeof(C);
  }

  void run(const KernelArgs& args) const {
    const auto [heads, queries, keys, key_size, value_size] = this->sizes_;
    const C* q = as<C>(args.operands[0]);
    const C* k = as<C>(args.operands[1]);
    const C* v = as<C>(args.operands[2]);
    C* y = as<C>(args.result);
    for (std::int64_t head = 0; head < heads; ++head) {
      this->for_queries([&](Tile tile) {
        run_tile(tile, q + tile.begin * key_size, k, v, y + tile.begin * value_size,
                 as<C>(args.scratch));
      });
      q += queries * key_size;
      k += keys * key_size;
      v += keys * value_size;
      y += queries * value_size;
    }
  }

 private:
  void run_tile(Tile queries, const C* q, const C* k, const C* v, C* y, C* scratch) const {
    const std::int64_t size = this->sizes_.value_size;
    C* scores = scratch;
    C* part = scores + kQueryTile * kKeyTile;
    C* tops = part + kQueryTile * size;
    C* sums = tops + kQueryTile;
    std::fill_n(tops, queries.size, lowest<C>());
    std::fill_n(sums, queries.size, C{0});
    std::fill_n(y, queries.size * size, C{0});
    this->for_keys(queries, [&](Tile keys) {
      this->scores_(queries, keys, q, k + keys.begin * this->sizes_.key_size, scores);
      for (std::int64_t r = 0; r < queries.size; ++r) {
        C* row = scores + r * keys.size;
        const std::int64_t count = this->visible(queries.begin + r, keys);
        const C top = Maximum{}(tops[r], this->scale_row(row, count));
        const C kept = Exponential{}(tops[r] - top);
        sums[r] = sums[r] * kept + this->power_row(row, count, keys.size, top);
        tops[r] = top;
        for (std::int64_t e = 0; e < size; ++e) y[r * size + e] *= kept;
      }
      this->to_queries_(queries, keys, scores, v + keys.begin * size, part);
      this->add_to(y, part, queries.size * size);
    });
    for (std::int64_t r = 0; r < queries.size; ++r) {
      const C share = 1 / sums[r];
      for (std::int64_t e = 0; e < size; ++e) y[r * size + e] *= share;
    }
  }
};

/// For a tile of queries, recomputes and keeps the weights of all keys, so that every product is
/// computed once. Rows of keys and values have the same size.
template <typename C>
class Backward : public Tiles<C> {
 public:
  Backward(const Sizes& sizes, const AttentionForm& form, DType dtype, const ChipContext& chip)
      : Tiles<C>(sizes, form, 0, dtype, chip),
        to_keys_(sizes.queries, sizes.keys, dtype, chip,
                 [&](std::int64_t queries, std::int64_t keys) {
                   return Matmul{.batch = {},
                                 .m = keys,
                                 .n = sizes.key_size,
                                 .k = queries,
                                 .lhs = columns_of(keys),
                                 .rhs = rows_of(sizes.key_size)};
                 }) {}

  std::size_t scratch_bytes() const {
    const auto& [heads, queries, keys, key_size, value_size] = this->sizes_;
    return static_cast<std::size_t>(kQueryTile * (keys + kKeyTile + 3) + kKeyTile * key_size) *
           sizeof(C);
  }

  void run(const KernelArgs& args) const {
    const auto [heads, queries, keys, size, value_size] = this->sizes_;
    Head head{as<C>(args.operands[0]), as<C>(args.operands[1]), as<C>(args.operands[2]),
              as<C>(args.operands[3]), as<C>(args.operands[4]), as<C>(args.result)};
    for (std::int64_t h = 0; h < heads; ++h) {
      std::fill_n(head.result, (queries + 2 * keys) * size, C{0});
      this->for_queries([&](Tile tile) { run_tile(tile, head, as<C>(args.scratch)); });
      for (const C** rows : {&head.q, &head.y, &head.g}) *rows += queries * size;
      for (const C** rows : {&head.k, &head.v}) *rows += keys * size;
      head.result += (queries + 2 * keys) * size;
    }
  }

 private:
  struct Head {
    const C* q;
    const C* k;
    const C* v;
    const C* y;
    const C* g;
    C* result;
  };

  void run_tile(Tile queries, const Head& head, C* scratch) const {
    const std::int64_t size = this->sizes_.key_size;
    C* weights = scratch;  // a dense matrix for each tile of keys
    C* slopes = weights + kQueryTile * this->sizes_.keys;
    C* part = slopes + kQueryTile * kKeyTile;
    C* along = part + std::max(kQueryTile, kKeyTile) * size;
    const C* q = head.q + queries.begin * size;
    const C* g = head.g + queries.begin * size;
    const C* y = head.y + queries.begin * size;
    C* of_q = head.result + queries.begin * size;
    C* of_k = head.result + this->sizes_.queries * size;
    C* of_v = of_k + this->sizes_.keys * size;
    weigh(queries, q, head.k, weights, along + kQueryTile);
    for (std::int64_t r = 0; r < queries.size; ++r) {
      for (std::int64_t e = 0; e < size; ++e) part[e] = g[r * size + e] * y[r * size + e];
      along[r] = combine_run(part, size, C{0}, Add{});
    }
    this->for_keys(queries, [&](Tile keys) {
      C* tile = weights + keys.begin * queries.size;
      to_keys_(queries, keys, tile, g, part);
      this->add_to(of_v + keys.begin * size, part, keys.size * size);
      this->scores_(queries, keys, g, head.v + keys.begin * size, slopes);
      for (std::int64_t r = 0; r < queries.size; ++r) {
        C* slope = slopes + r * keys.size;
        const C* weight = tile + r * keys.size;
        for (std::int64_t c = 0; c < keys.size; ++c) {
          slope[c] = weight[c] * (slope[c] - along[r]) * this->scale_;
        }
      }
      this->to_queries_(queries, keys, slopes, head.k + keys.begin * size, part);
      this->add_to(of_q, part, queries.size * size);
      to_keys_(queries, keys, slopes, q, part);
      this->add_to(of_k + keys.begin * size, part, keys.size * size);
    });
  }

  /// Computes the weights of all keys that the queries see. `tops` is memory for two numbers per
  /// query.
  void weigh(Tile queries, const C* q, const C* k, C* weights, C* tops) const {
    C* sums = tops + kQueryTile;
    std::fill_n(tops, queries.size, lowest<C>());
    std::fill_n(sums, queries.size, C{0});
    this->for_keys(queries, [&](Tile keys) {
      C* tile = weights + keys.begin * queries.size;
      this->scores_(queries, keys, q, k + keys.begin * this->sizes_.key_size, tile);
      for (std::int64_t r = 0; r < queries.size; ++r) {
        const std::int64_t count = this->visible(queries.begin + r, keys);
        tops[r] = Maximum{}(tops[r], this->scale_row(tile + r * keys.size, count));
      }
    });
    this->for_keys(queries, [&](Tile keys) {
      C* row = weights + keys.begin * queries.size;
      for (std::int64_t r = 0; r < queries.size; ++r, row += keys.size) {
        const std::int64_t count = this->visible(queries.begin + r, keys);
        sums[r] += this->power_row(row, count, keys.size, tops[r]);
      }
    });
    this->for_keys(queries, [&](Tile keys) {
      C* row = weights + keys.begin * queries.size;
      for (std::int64_t r = 0; r < queries.size; ++r, row += keys.size) {
        const C share = 1 / sums[r];
        for (std::int64_t c = 0; c < keys.size; ++c) row[c] *= share;
      }
    });
  }

  TileProduct to_keys_;  ///< [queries, keys] transposed x [queries, size]
};

template <typename Method>
Kernel kernel(Method method) {
  const std::size_t scratch_bytes = method.scratch_bytes();
  Kernel kernel =
      vectorized([method = std::move(method)](const KernelArgs& args) { method.run(args); });
  kernel.scratch_bytes = scratch_bytes;
  return kernel;
}

template <typename C>
Kernel of_dtype(const Program& program, OpId op, const ChipContext& chip) {
  const Shape& q = program.shape(program.op_operands(op)[0]);
  const Shape& v = program.shape(program.op_operands(op)[2]);
  const TensorType& result = program.type(program.result(op));
  const Sizes sizes{q[0] * q[1], q[2], v[2], q[3], v[3]};
  if (q.num_elements() == 0 || v.num_elements() == 0) {
    const std::int64_t count = result.num_elements();
    return {[count](const KernelArgs& args) { std::fill_n(as<C>(args.result), count, C{0}); }};
  }
  const auto attrs = program.op_attrs(op);
  const AttentionForm form = attention_form_of(attrs);
  const DType dtype = std::is_same_v<C, float> ? DType::f32 : DType::f64;
  if (program.kind(op) == OpKind::attention_grad) {
    return kernel(Backward<C>(sizes, form, dtype, chip));
  }
  const AtomList atoms = AtomList::from_bits(static_cast<std::uint64_t>(attrs[2]));
  const std::int64_t first_query = chip.mesh.index_in(chip.position, atoms) * sizes.queries;
  return kernel(Forward<C>(sizes, form, first_query, dtype, chip));
}

/// oneDNN multiplies tiles in f32 (bf16 and f16 go through it), plain loops in f64. A head's result
/// depends on its own operands alone.
Kernel attention(const Program& program, OpId op, const ChipContext& chip) {
  switch (program.type(program.result(op)).dtype) {
    case DType::f32: return of_dtype<float>(program, op, chip);
    case DType::bf16:
    case DType::f16: return through_f32(program, op, of_dtype<float>(program, op, chip));
    case DType::f64: return of_dtype<double>(program, op, chip);
    default: return {};
  }
}

}  // namespace

constexpr Prepare prepares::attention = prepare_by<kernels::attention>;
constexpr Prepare prepares::attention_grad = prepare_by<kernels::attention>;

}  // namespace weft::kernels
