/// The kernels of attention and attention_grad. They compute tile by tile of queries and keys, so
/// that the matrix of all queries by all keys is never stored (FlashAttention: T. Dao et al.,
/// 2022).

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "chips/cpu/attention/bias.hpp"
#include "chips/cpu/attention/products.hpp"
#include "chips/cpu/attention/query_tile.hpp"
#include "chips/cpu/loops/prepares.hpp"
#include "chips/cpu/loops/vectorize.hpp"
#include "chips/cpu/onednn/matmul.hpp"
#include "spmd/ops/attribute_views.hpp"

namespace weft::kernels {
namespace {

/// Computes the forward pass, one tile of keys after another. When the largest score of a query
/// changes, QueryTile::keep() rescales the sums computed so far.
template <typename Products>
class Forward {
 public:
  using V = typename Products::V;
  using C = typename Products::C;
  using E = typename Products::E;
  using Tile = AttentionTile<V, C>;

  Forward(const AttentionSizes& sizes, const KernelArgs& args, ScratchParts& parts)
      : sizes_(sizes),
        queries_(sizes_, parts),
        q_(sizes.key_size, /*with_rows=*/false, parts),
        k_(sizes.dtype, args.operands[1], sizes.keys, sizes.key_size, /*right=*/false, parts),
        v_(sizes.dtype, args.operands[2], sizes.keys, sizes.value_size, /*right=*/true, parts),
        bias_(sizes, args.operands[3], parts),
        scores_(parts.take<C>(Tile::kKeys * Tile::kQueries)),
        weight_operands_(parts),
        sums_{parts.take<C>(Tile::kQueries * Tile::padded(sizes.value_size)),
              Tile::padded(sizes.value_size)} {}

  void run(const KernelArgs& args) {
    const auto bytes = static_cast<std::int64_t>(byte_size(sizes_.dtype));
    const std::byte* q = args.operands[0];
    std::byte* y = args.result;
    for (std::int64_t head = 0; head < sizes_.heads; ++head) {
      k_.next();
      v_.next();
      bias_.begin(head);
      for (std::int64_t i = 0; i < sizes_.queries; i += Tile::kQueries) {
        queries_.begin(i);
        q_.read(sizes_.dtype, q + i * sizes_.key_size * bytes, queries_.count());
        run_queries();
        if (!are_finite<V>(sums_.data, queries_.count() * sums_.row)) {
          only_seen_ = true;
          queries_.begin(i);
          run_queries();
          only_seen_ = false;
        }
        write_rows(
            sizes_.dtype, VectorRows<const C>{sums_.data, sums_.row}, queries_.count(),
            sizes_.value_size, [&](std::int64_t r) { return queries_.share(r); },
            y + i * sizes_.value_size * bytes);
      }
      q += sizes_.queries * sizes_.key_size * bytes;
      y += sizes_.queries * sizes_.value_size * bytes;
    }
  }

 private:
  void run_queries() {
    std::fill_n(sums_.data, queries_.count() * sums_.row, C{0});
    queries_.for_keys([&](const Tile& tile, std::int64_t j) {
      if (!bias_.read(tile, queries_.first(), j)) return;
      tile.multiply(k_.left(j), sizes_.key_size / kDepthOf<E>, q_.columns(),
                    static_cast<C>(sizes_.scale), scores_);
      bias_.add_to(tile, scores_);
      if (queries_.weigh(tile, scores_)) queries_.keep(sums_);
      const E* const weights = weight_operands_.along_keys(tile, scores_);
      const std::int64_t vectors = Tile::whole_vectors(sizes_.value_size);
      if (only_seen_) {
        tile.add_seen_to_queries(weights, v_.right(j), vectors, sums_);
      } else {
        tile.add_to_queries(weights, v_.right(j), vectors, sums_);
      }
    });
  }

  const AttentionSizes& sizes_;
  QueryTile<V, C> queries_;
  typename Products::Rows q_;
  typename Products::Head k_;
  typename Products::Head v_;
  TileBias<V, C> bias_;
  C* scores_;  ///< [keys, queries]: first scores, then the weights that replace them
  typename Products::Weights weight_operands_;
  VectorRows<C> sums_;
  /// True while a tile is computed again because its results were infinite or NaN. Then keys that a
  /// query doesn't see are skipped instead of multiplied by 0.
  bool only_seen_ = false;
};

/// Computes the backward pass. Stores the weights of all keys for a tile of queries, so that no
/// product is computed twice. Rows of keys and rows of values must have the same size.
template <typename Products>
class Backward {
 public:
  using V = typename Products::V;
  using C = typename Products::C;
  using E = typename Products::E;
  using Tile = AttentionTile<V, C>;
  using X = typename Products::X;
  static constexpr std::int64_t kQueries = Tile::kQueries;

  Backward(const AttentionSizes& sizes, const KernelArgs& args, ScratchParts& parts)
      : sizes_(sizes),
        vectors_(Tile::whole_vectors(sizes.key_size)),
        depth_(sizes.key_size / kDepthOf<E>),
        queries_(sizes_, parts),
        q_(sizes.key_size, /*with_rows=*/true, parts),
        g_(sizes.key_size, /*with_rows=*/true, parts),
        y_(sizes.key_size, /*with_rows=*/false, parts),
        k_(sizes.dtype, args.operands[1], sizes.keys, sizes.key_size, /*right=*/true, parts),
        v_(sizes.dtype, args.operands[2], sizes.keys, sizes.key_size, /*right=*/false, parts),
        bias_(sizes, args.operands[5], parts),
        weights_(parts.take<C>(sizes.keys * kQueries)),
        tops_(parts.take<C>(Tile::tiles(sizes.keys) * kQueries)),
        weighs_(parts.take<bool>(Tile::tiles(sizes.keys))),
        slopes_(parts.take<C>(Tile::kKeys * kQueries)),
        weight_operands_(parts),
        delta_(parts.take<C>(kQueries)),
        shares_(parts.take<C>(kQueries)),
        of_q_(take_rows(kQueries, parts)),
        of_k_(take_rows(sizes.keys, parts)),
        of_v_(take_rows(sizes.keys, parts)) {}

  void run(const KernelArgs& args) {
    const std::int64_t row_bytes =
        sizes_.key_size * static_cast<std::int64_t>(byte_size(sizes_.dtype));
    const auto write = [&](VectorRows<C> rows, std::int64_t count, C factor, std::byte* to) {
      write_rows(
          sizes_.dtype, VectorRows<const C>{rows.data, rows.row}, count, sizes_.key_size,
          [=](std::int64_t) { return factor; }, to);
    };
    std::byte* result = args.result;
    for (std::int64_t head = 0; head < sizes_.heads; ++head) {
      k_.next();
      v_.next();
      bias_.begin(head);
      for (const VectorRows<C>& sums : {of_k_, of_v_}) {
        std::fill_n(sums.data, sizes_.keys * sums.row, C{0});
      }
      for (std::int64_t i = 0; i < sizes_.queries; i += kQueries) {
        begin(args, i, (head * sizes_.queries + i) * row_bytes);
        weigh();
        differentiate();
        if (!are_finite<V>(of_q_.data, kQueries * of_q_.row)) find_of_seen(i);
        write(of_q_, queries_.count(), static_cast<C>(sizes_.scale), result + i * row_bytes);
      }
      result += sizes_.queries * row_bytes;
      write(of_k_, sizes_.keys, static_cast<C>(sizes_.scale), result);
      result += sizes_.keys * row_bytes;
      write(of_v_, sizes_.keys, 1, result);
      result += sizes_.keys * row_bytes;
    }
  }

 private:
  VectorRows<C> take_rows(std::int64_t count, ScratchParts& parts) const {
    const std::int64_t row = vectors_ * Tile::kLanes;
    return {parts.take<C>(count * row), row};
  }

  /// Reads the tile of queries that begins with query `first`; the row of this query begins at
  /// `byte` of each operand.
  void begin(const KernelArgs& args, std::int64_t first, std::int64_t byte) {
    queries_.begin(first);
    const std::int64_t count = queries_.count();
    q_.read(sizes_.dtype, args.operands[0] + byte, count);
    y_.read(sizes_.dtype, args.operands[3] + byte, count);
    g_.read(sizes_.dtype, args.operands[4] + byte, count);
    std::fill_n(of_q_.data, kQueries * of_q_.row, C{0});
    for (std::int64_t i = 0; i < kQueries; i += Tile::kLanes) {
      V delta{};
      for (std::int64_t e = 0; e < depth_; ++e) {
        const std::int64_t at = e * kQueries + i;
        add_products(delta, X::load(y_.columns() + at), X::load(g_.columns() + at));
      }
      delta.store(delta_ + i);
    }
  }

  /// Computes the weights of the keys that the queries see, relative to the largest score up to
  /// each tile of keys.
  void weigh() {
    queries_.for_keys([&](const Tile& tile, std::int64_t j) {
      bool& weighs = weighs_[j / Tile::kKeys];
      weighs = bias_.read(tile, queries_.first(), j);
      if (!weighs) return;
      C* const weights = weights_ + j * kQueries;
      tile.multiply(k_.left(j), depth_, q_.columns(), static_cast<C>(sizes_.scale), weights);
      bias_.add_to(tile, weights);
      queries_.weigh(tile, weights);
      std::copy_n(queries_.tops(), kQueries, tops_ + j / Tile::kKeys * kQueries);
    });
    for (std::int64_t i = 0; i < kQueries; ++i) shares_[i] = queries_.share(i);
  }

  void differentiate() {
    queries_.for_keys([&](const Tile& tile, std::int64_t j) {
      if (!weighs_[j / Tile::kKeys]) return;
      C* const weights = weights_ + j * kQueries;
      tile.multiply(v_.left(j), depth_, g_.columns(), C{1}, slopes_);
      find_slopes(tile, tops_ + j / Tile::kKeys * kQueries, weights);
      tile.add_to_keys(weight_operands_.along_queries(tile, weights), g_.rows(), vectors_,
                       {of_v_.data + j * of_v_.row, of_v_.row});
      tile.add_to_keys(weight_operands_.along_queries(tile, slopes_), q_.rows(), vectors_,
                       {of_k_.data + j * of_k_.row, of_k_.row});
      tile.add_to_queries(weight_operands_.along_keys(tile, slopes_), k_.right(j), vectors_, of_q_);
    });
  }

  /// Computes the cotangents of the queries again, skipping the keys that a query doesn't see. This
  /// is needed if the cotangents were infinite or NaN.
  void find_of_seen(std::int64_t first) {
    std::fill_n(of_q_.data, kQueries * of_q_.row, C{0});
    queries_.begin(first);
    weigh();
    queries_.for_keys([&](const Tile& tile, std::int64_t j) {
      if (!weighs_[j / Tile::kKeys]) return;
      tile.multiply(v_.left(j), depth_, g_.columns(), C{1}, slopes_);
      find_slopes(tile, tops_ + j / Tile::kKeys * kQueries, weights_ + j * kQueries);
      tile.add_seen_to_queries(weight_operands_.along_keys(tile, slopes_), k_.right(j), vectors_,
                               of_q_);
    });
  }

  /// Converts the tile's weights, which are relative to the largest scores `tops` at that time, to
  /// final softmax weights. Replaces the cotangents of the weights, in slopes_, by the cotangents
  /// of the scores. The score of a key with weight 0 gets cotangent 0, even if the value of the key
  /// is NaN.
  void find_slopes(const Tile& tile, const C* tops, C* weights) const {
    for (std::int64_t i = 0; i < tile.vectors() * Tile::kLanes; i += Tile::kLanes) {
      const V kept = weight_of(V::load(tops + i) - V::load(queries_.tops() + i));
      const V factor = kept * V::load(shares_ + i);
      const V delta = V::load(delta_ + i);
      const std::int64_t end = i + tile.scored(i / Tile::kLanes) * kQueries;
      for (std::int64_t at = i; at < end; at += kQueries) {
        const V weight = V::load(weights + at) * factor;
        weight.store(weights + at);
        const V slope = weight * (V::load(slopes_ + at) - delta);
        where_less(weight, V(std::numeric_limits<C>::denorm_min()), V(C{0}), slope)
            .store(slopes_ + at);
      }
    }
  }

  const AttentionSizes& sizes_;
  std::int64_t vectors_;  ///< number of vectors in a row
  std::int64_t depth_;    ///< number of terms of a product along a row
  QueryTile<V, C> queries_;
  typename Products::Rows q_;
  typename Products::Rows g_;
  typename Products::Rows y_;
  typename Products::Head k_;
  typename Products::Head v_;
  TileBias<V, C> bias_;
  C* weights_;    ///< [keys, kQueries]
  C* tops_;       ///< largest scores up to each tile of keys, [kQueries]
  bool* weighs_;  ///< by tile of keys: whether the bias shows any of its keys
  C* slopes_;
  typename Products::Weights weight_operands_;  ///< weights or their cotangents, converted
  C* delta_;   ///< by query: dot product of result and its cotangent (FlashAttention's D)
  C* shares_;  ///< by query: 1 / (sum of the query's weights)
  VectorRows<C> of_q_;
  VectorRows<C> of_k_;
  VectorRows<C> of_v_;
};

/// The body that vectorized_by_size() compiles for each size of vectors. Method is Forward or
/// Backward.
template <template <typename> class Method, typename C>
struct AttentionKernel {
  AttentionSizes sizes;

  template <int kBytes>
  void run(const KernelArgs& args) const {
    run_with<PlainProducts<Lanes<C, kBytes>, C>>(args);
  }

  Kernel kernel() const {
#if defined(__x86_64__)
    if constexpr (std::is_same_v<C, float>) {
      if (multiplies_pairs()) {
        Kernel kernel{[*this](const KernelArgs& args) {
          run_avx512_bf16([this](const KernelArgs& each) { run_with<PairedProducts>(each); }, args);
        }};
        kernel.scratch_bytes = scratch_bytes<PairedProducts>();
        return kernel;
      }
    }
#endif
    // Attention of f64 is rare, so it isn't compiled for the largest vectors.
    constexpr Vectors most = std::is_same_v<C, double> ? Vectors::avx2 : Vectors::avx512;
    Kernel kernel = vectorized_by_size<most>(*this);
    // The largest vectors need the most scratch memory, so this suffices for all sizes of vectors.
    kernel.scratch_bytes = scratch_bytes<PlainProducts<Lanes<C, 64>, C>>();
    return kernel;
  }

 private:
  template <typename Products>
  void run_with(const KernelArgs& args) const {
    ScratchParts parts(args.scratch);
    Method<Products>(sizes, args, parts).run(args);
  }
  template <typename Products>
  std::size_t scratch_bytes() const {
    ScratchParts parts(nullptr);
    Method<Products>(sizes, {}, parts);
    return parts.next();
  }
  /// Returns whether bf16 is multiplied without conversion to f32, two numbers at a time (decision
  /// 0047).
  bool multiplies_pairs() const {
    return sizes.dtype == DType::bf16 && multiplied_dtype(DType::bf16) == DType::bf16 &&
           kernel_path().vectors == Vectors::avx512 && sizes.key_size % 2 == 0;
  }
};

template <typename C>
Kernel of_dtype(const Program& program, OpId op, const ChipContext& chip) {
  const Shape& q = program.shape(program.op_operands(op)[0]);
  const Shape& v = program.shape(program.op_operands(op)[2]);
  const TensorType& result = program.type(program.result(op));
  if (q.num_elements() == 0 || v.num_elements() == 0) {
    const auto bytes = static_cast<std::size_t>(result.bytes());
    return {[bytes](const KernelArgs& args) { std::fill_n(args.result, bytes, std::byte{0}); }};
  }
  const auto attrs = program.op_attrs(op);
  const AttentionForm form = attention_form_of(attrs);
  AttentionSizes sizes{.heads = q[0] * q[1],
                       .queries = q[2],
                       .keys = v[2],
                       .key_size = q[3],
                       .value_size = v[3],
                       .scale = form.scale,
                       .causal = form.causal,
                       .first_query = 0,
                       .dtype = result.dtype};
  const bool backward = program.kind(op) == OpKind::attention_grad;
  const auto operands = program.op_operands(op);
  const std::size_t bias = backward ? 5 : 3;
  if (operands.size() > bias) sizes.bias = bias_form_of(program.type(operands[bias]), q[1]);
  if (backward) {
    return AttentionKernel<Backward, C>{sizes}.kernel();
  }
  const AtomList atoms = AtomList::from_bits(static_cast<std::uint64_t>(attrs[2]));
  sizes.first_query = chip.mesh.index_in(chip.position, atoms) * sizes.queries;
  return AttentionKernel<Forward, C>{sizes}.kernel();
}

/// Makes the kernel of attention. f16 is computed in f32 and rounded once, and so is bf16 unless it
/// is multiplied in pairs. With pairs, weights and their gradients are rounded to bf16 between
/// products. The result for a head depends only on the operands of this head.
Kernel attention(const Program& program, OpId op, const ChipContext& chip) {
  switch (program.type(program.result(op)).dtype) {
    case DType::f32:
    case DType::bf16:
    case DType::f16: return of_dtype<float>(program, op, chip);
    case DType::f64: return of_dtype<double>(program, op, chip);
    default: return {};
  }
}

}  // namespace

constexpr Prepare prepares::attention = prepare_by<kernels::attention>;
constexpr Prepare prepares::attention_grad = prepare_by<kernels::attention>;

}  // namespace weft::kernels
