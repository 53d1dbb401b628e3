/// The kernel of dot_general. oneDNN computes f32 and bf16, plain loops compute other dtypes. f16
/// is computed in f32, and so is bf16 on processors that can't multiply it.

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "chips/cpu/kernels/elementwise.hpp"
#include "chips/cpu/loops/arithmetic.hpp"
#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/prepares.hpp"
#include "chips/cpu/loops/strided.hpp"
#include "chips/cpu/onednn/matmul.hpp"
#include "spmd/ops/attribute_views.hpp"
#include "spmd/ops/infer.hpp"
#include "spmd/program/strides.hpp"

namespace weft::kernels {
namespace {

using Dims = std::span<const std::int64_t>;

/// Several dims, merged into one.
struct Run {
  std::int64_t size = 1;
  std::int64_t stride = 0;  ///< 0 if `size` is 1, for which any stride is right
};

/// Merges the dims, in this order, into one. Returns nothing if their strides don't allow it.
std::optional<Run> run_of(const Shape& shape, const Strides& strides, Dims dims) {
  Run run;
  for (const std::int64_t dim : dims) {
    const std::int64_t size = shape[static_cast<int>(dim)];
    const std::int64_t stride = strides[static_cast<std::size_t>(dim)];
    if (size == 1) continue;
    if (run.size != 1 && run.stride != stride * size) return std::nullopt;
    run = {run.size * size, stride};
  }
  return run;
}

std::int64_t product(const Shape& shape, Dims dims) {
  std::int64_t size = 1;
  for (const std::int64_t dim : dims) size *= shape[static_cast<int>(dim)];
  return size;
}

/// An operand as a batch of matrices [batch.., rows, columns].
struct Matrices {
  Matmul::Operand place;
  std::optional<StridedView> copy;  ///< copy that must be made first, if any
};

Matrices matrices(const Shape& shape, Dims batch, Dims rows, Dims columns) {
  const Strides strides = dense_strides(shape);
  const auto row = run_of(shape, strides, rows);
  const auto column = run_of(shape, strides, columns);
  Matrices result;
  if (row && column && (column->stride <= 1 || row->stride == 1)) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      result.place.batch[i] = strides[static_cast<std::size_t>(batch[i])];
    }
    // A single row or column has no stride, so it gets the stride that a dense matrix would have.
    const bool row_major = column->stride == 1 || (column->stride == 0 && row->stride != 1);
    result.place.row = row->stride != 0 ? row->stride : row_major ? column->size : 1;
    result.place.column = column->stride != 0 ? column->stride : row_major ? 1 : row->size;
    return result;
  }
  StridedView view;
  std::vector<std::int64_t> sizes;
  for (const Dims dims : {batch, rows, columns}) {
    for (const std::int64_t dim : dims) {
      view.strides[sizes.size()] = strides[static_cast<std::size_t>(dim)];
      sizes.push_back(shape[static_cast<int>(dim)]);
    }
  }
  view.shape = Shape(sizes);
  const Strides dense = dense_strides(view.shape);
  std::copy_n(dense.begin(), batch.size(), result.place.batch.begin());
  result.place.row = product(shape, columns);
  result.place.column = 1;
  result.copy = view;
  return result;
}

/// A stage that prepares an operand for the matmul and writes it to a scratch buffer of its own.
struct Stage {
  Kernel kernel;
  std::size_t at = 0;  ///< offset of the stage's result in the scratch memory
};

const std::byte* run_stages(std::span<const Stage> stages, const std::byte* operand,
                            std::byte* scratch) {
  for (const Stage& stage : stages) {
    stage.kernel.run({.operands = {operand}, .result = scratch + stage.at});
    operand = scratch + stage.at;
  }
  return operand;
}

/// Assigns offsets in a kernel's scratch memory. Used when the kernel is made.
class Scratch {
 public:
  std::size_t take(const TensorType& type) {
    const std::size_t at = bytes_;
    bytes_ += (static_cast<std::size_t>(type.bytes()) + 63) / 64 * 64;
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

std::vector<Stage> stages(const TensorType& type, const Matrices& matrices, DType dtype,
                          Scratch& scratch) {
  std::vector<Stage> list;
  if (matrices.copy) list.push_back({copy_view(*matrices.copy, type.dtype), scratch.take(type)});
  if (type.dtype != dtype) {
    list.push_back({convert(type, dtype), scratch.take({dtype, type.shape})});
  }
  return list;
}

Kernel zeros(const TensorType& type) {
  return {[bytes = type.bytes()](const KernelArgs& args) {
    std::fill_n(args.result, bytes, std::byte{0});
  }};
}

/// Computes again the elements of a product that aren't finite, without the terms whose left or
/// right factor (by DotDimsView::skip_zeros) is 0. Finite elements stay unchanged.
template <typename T>
class SkippedZeros {
 public:
  SkippedZeros(const Shape& lhs, const Shape& rhs, const DotDimsView& dims)
      : skips_lhs_(dims.skip_zeros == SkipZeros::lhs) {
    const auto places = [](const Shape& shape, Dims which) {
      const std::vector<std::int64_t> strides = row_major_strides(shape);
      std::vector<std::int64_t> sizes;
      std::vector<std::int64_t> picked;
      for (const std::int64_t dim : which) {
        sizes.push_back(shape[static_cast<int>(dim)]);
        picked.push_back(strides[static_cast<std::size_t>(dim)]);
      }
      return offsets(sizes, picked);
    };
    const auto side = [&](const Shape& shape, Dims batch, Dims contracting) {
      return Side{places(shape, batch), places(shape, free_dims(shape.size(), batch, contracting)),
                  places(shape, contracting)};
    };
    lhs_ = side(lhs, dims.lhs_batch, dims.lhs_contracting);
    rhs_ = side(rhs, dims.rhs_batch, dims.rhs_contracting);
  }

  void operator()(const T* lhs, const T* rhs, T* result) const {
    for (std::size_t b = 0; b < lhs_.batch.size(); ++b) {
      for (const std::int64_t m : lhs_.free) {
        for (const std::int64_t n : rhs_.free) {
          if (!std::isfinite(load(*result))) {
            *result = store<T>(sum(lhs + lhs_.batch[b] + m, rhs + rhs_.batch[b] + n));
          }
          ++result;
        }
      }
    }
  }

 private:
  /// The offsets of an operand's elements along its batch, free and contracting dims.
  struct Side {
    std::vector<std::int64_t> batch, free, contracting;
  };

  Compute<T> sum(const T* lhs, const T* rhs) const {
    Compute<T> sum = 0;
    for (std::size_t k = 0; k < lhs_.contracting.size(); ++k) {
      const Compute<T> left = load(lhs[lhs_.contracting[k]]);
      const Compute<T> right = load(rhs[rhs_.contracting[k]]);
      if ((skips_lhs_ ? left : right) != 0) sum += left * right;
    }
    return sum;
  }

  Side lhs_;
  Side rhs_;
  bool skips_lhs_;
};

Kernel without_skipped(Kernel product, const TensorType& lhs, const TensorType& rhs,
                       const DotDimsView& dims) {
  return visit_dtype(lhs.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    if constexpr (kIsFloating<T>) {
      product.run = [run = std::move(product.run),
                     skipped =
                         SkippedZeros<T>(lhs.shape, rhs.shape, dims)](const KernelArgs& args) {
        run(args);
        skipped(as<T>(args.operands[0]), as<T>(args.operands[1]), as<T>(args.result));
      };
    }
    return std::move(product);
  });
}

Kernel product_kernel(const Program& program, OpId op, const ChipContext& chip) {
  const TensorType& lhs = program.type(program.op_operands(op)[0]);
  const TensorType& rhs = program.type(program.op_operands(op)[1]);
  const TensorType& result = program.type(program.result(op));
  const auto [lhs_batch, rhs_batch, lhs_contracting, rhs_contracting, skip_zeros] =
      dot_dims(program.op_attrs(op));
  const auto lhs_free = free_dims(lhs.shape.size(), lhs_batch, lhs_contracting);
  const auto rhs_free = free_dims(rhs.shape.size(), rhs_batch, rhs_contracting);

  Matmul matmul;
  matmul.batch = Shape(std::span<const std::int64_t>(result.shape).first(lhs_batch.size()));
  matmul.m = product(lhs.shape, lhs_free);
  matmul.n = product(rhs.shape, rhs_free);
  matmul.k = product(lhs.shape, lhs_contracting);
  if (result.num_elements() == 0 || matmul.k == 0) return zeros(result);

  const DType dtype = multiplied_dtype(result.dtype);
  const Matrices left = matrices(lhs.shape, lhs_batch, lhs_free, lhs_contracting);
  const Matrices right = matrices(rhs.shape, rhs_batch, rhs_contracting, rhs_free);
  matmul.lhs = left.place;
  matmul.rhs = right.place;
  const MatmulFunction run = prepare_matmul(matmul, dtype, chip);
  if (!run) return {};

  Scratch scratch;
  const auto left_stages = stages(lhs, left, dtype, scratch);
  const auto right_stages = stages(rhs, right, dtype, scratch);
  const bool converts = result.dtype != dtype;
  const TensorType computed{dtype, result.shape};
  const std::size_t at = converts ? scratch.take(computed) : 0;
  const Kernel convert_result = converts ? convert(computed, result.dtype) : Kernel{};
  return {[=](const KernelArgs& args) {
            std::byte* out = converts ? args.scratch + at : args.result;
            run(run_stages(left_stages, args.operands[0], args.scratch),
                run_stages(right_stages, args.operands[1], args.scratch), out);
            if (converts) convert_result.run({.operands = {out}, .result = args.result});
          },
          scratch.bytes()};
}

Kernel dot_general(const Program& program, OpId op, const ChipContext& chip) {
  Kernel product = product_kernel(program, op, chip);
  const DotDimsView dims = dot_dims(program.op_attrs(op));
  const bool skips = dims.skip_zeros == SkipZeros::lhs || dims.skip_zeros == SkipZeros::rhs;
  if (!skips || !product.run) return product;
  return without_skipped(std::move(product), program.type(program.op_operands(op)[0]),
                         program.type(program.op_operands(op)[1]), dims);
}

}  // namespace

constexpr Prepare prepares::dot_general = prepare_by<kernels::dot_general>;

}  // namespace weft::kernels
