/// Kernels of ops with operands that determine where elements are read or written.

#include <algorithm>
#include <span>
#include <utility>

#include "chips/cpu/kernels/assemble.hpp"
#include "chips/cpu/loops/arithmetic.hpp"
#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/prepares.hpp"
#include "chips/cpu/loops/strided.hpp"
#include "chips/cpu/loops/vectorize.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/program/index_check.hpp"

namespace weft::kernels {
namespace {

/// The rows that this chip has of a tensor that is sharded by `atoms` in dim 0.
struct Rows {
  std::int64_t first;  ///< number of the chip's first row in the whole tensor
  std::int64_t count;
  std::int64_t size;  ///< number of elements of a row

  Rows(const Shape& shape, std::int64_t atoms, const ChipContext& chip)
      : first(chip.mesh.index_in(chip.position,
                                 AtomList::from_bits(static_cast<std::uint64_t>(atoms))) *
              shape[0]),
        count(shape[0]),
        size(1) {
    for (int dim = 1; dim < shape.size(); ++dim) size *= shape[dim];
  }
  bool has(std::int64_t row) const { return row >= first && row < first + count; }
};

/// Makes the kernel of gather. It copies rows as bytes, whatever their dtype.
Kernel gather(std::int64_t index_count, const Rows& rows, std::int64_t row_bytes) {
  return {[=](const KernelArgs& args) {
    const auto* index = as<std::int32_t>(args.operands[1]);
    std::byte* to = args.result;
    for (std::int64_t i = 0; i < index_count; ++i, to += row_bytes) {
      if (rows.has(index[i])) {
        std::copy_n(args.operands[0] + (index[i] - rows.first) * row_bytes, row_bytes, to);
      } else {
        std::fill_n(to, row_bytes, std::byte{0});
      }
    }
  }};
}

/// Makes the kernel of scatter, which adds rows. bf16 and f16 are summed in scratch memory and
/// rounded once.
template <typename T>
Kernel scatter(std::int64_t index_count, const Rows& rows) {
  using Sum = Compute<T>;
  constexpr bool kRounds = !std::is_same_v<T, Sum>;
  Kernel kernel = vectorized([=](const KernelArgs& args) {
    const auto* index = as<std::int32_t>(args.operands[0]);
    const T* update = as<T>(args.operands[1]);
    Sum* sums = as<Sum>(kRounds ? args.scratch : args.result);
    std::fill_n(sums, rows.count * rows.size, Sum{0});
    for (std::int64_t i = 0; i < index_count; ++i, update += rows.size) {
      if (!rows.has(index[i])) continue;
      Sum* row = sums + (index[i] - rows.first) * rows.size;
      for (std::int64_t j = 0; j < rows.size; ++j) row[j] = Add{}(row[j], load(update[j]));
    }
    if constexpr (kRounds) {
      T* result = as<T>(args.result);
      for (std::int64_t j = 0; j < rows.count * rows.size; ++j) result[j] = store<T>(sums[j]);
    }
  });
  if (kRounds) {
    kernel.scratch_bytes = static_cast<std::size_t>(rows.count * rows.size) * sizeof(Sum);
  }
  return kernel;
}

Kernel check_index(IndexCheck check, std::int64_t count) {
  return {[check = std::move(check), count](const KernelArgs& args) {
    const std::span index(as<std::int32_t>(args.operands[0]), static_cast<std::size_t>(count));
    for (const std::int32_t i : index) {
      if (!check.allows(i)) check.refuse(i);
    }
    std::ranges::copy(index, as<std::int32_t>(args.result));
  }};
}

/// Computes the byte offset of a part of the dense tensor `whole`. Scalar operands of the op, one
/// per dim, give the index at which the part begins.
struct Window {
  Strides strides{};  ///< strides in bytes
  Strides last{};     ///< by dim: the largest valid start of the part
  int num_dims;
  std::size_t first_start;  ///< number of the first of these operands

  Window(const TensorType& whole, const Shape& part, std::size_t start_operand)
      : strides(dense_strides(whole.shape)),
        num_dims(whole.shape.size()),
        first_start(start_operand) {
    for (std::int64_t& stride : strides) stride *= byte_size(whole.dtype);
    for (int dim = 0; dim < num_dims; ++dim) {
      last[static_cast<std::size_t>(dim)] = whole.shape[dim] - part[dim];
    }
  }
  std::int64_t offset(const KernelArgs& args) const {
    std::int64_t bytes = 0;
    for (std::size_t dim = 0; dim < static_cast<std::size_t>(num_dims); ++dim) {
      const std::int64_t start = *as<std::int32_t>(args.operands[first_start + dim]);
      bytes += std::clamp<std::int64_t>(start, 0, last[dim]) * strides[dim];
    }
    return bytes;
  }
};

Kernel dynamic_slice(const TensorType& whole, const Shape& part) {
  const Kernel copy = copy_view({part, dense_strides(whole.shape)}, whole.dtype);
  if (part.num_elements() == 0) return {[](const KernelArgs&) {}};
  return {[window = Window(whole, part, 1), run = copy.run](const KernelArgs& args) {
    KernelArgs moved = args;
    moved.operands[0] += window.offset(args);
    run(moved);
  }};
}

Kernel dynamic_update_slice(const TensorType& whole, const Shape& part) {
  const Kernel put = put_view({part, dense_strides(whole.shape)}, whole.dtype);
  if (whole.bytes() == 0) return {[](const KernelArgs&) {}};
  return {[window = Window(whole, part, 2), run = put.run,
           bytes = whole.bytes()](const KernelArgs& args) {
    std::copy_n(args.operands[0], bytes, args.result);
    KernelArgs moved = args;
    moved.operands[0] = args.operands[1];
    moved.result += window.offset(args);
    run(moved);
  }};
}

const TensorType& operand(const Program& program, OpId op, std::size_t i) {
  return program.type(program.op_operands(op)[i]);
}

Kernel prepare_check(const Program& program, OpId op) {
  const ValueId source = picked_from(program, program.op_operands(op)[0]);
  return check_index(IndexCheck(program, op, source), operand(program, op, 0).num_elements());
}

Kernel prepare_gather(const Program& program, OpId op, const ChipContext& chip) {
  const TensorType& table = operand(program, op, 0);
  const Rows rows(table.shape, program.op_attrs(op)[0], chip);
  return gather(operand(program, op, 1).num_elements(), rows, rows.size * byte_size(table.dtype));
}

Kernel prepare_scatter(const Program& program, OpId op, const ChipContext& chip) {
  const TensorType& result = program.type(program.result(op));
  const Rows rows(result.shape, program.op_attrs(op)[1], chip);
  return visit_dtype(result.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    if constexpr (std::is_same_v<T, Pred>) {
      return {};
    } else {
      return scatter<T>(operand(program, op, 0).num_elements(), rows);
    }
  });
}

Kernel prepare_slice(const Program& program, OpId op) {
  return dynamic_slice(operand(program, op, 0), program.shape(program.result(op)));
}

Kernel prepare_update(const Program& program, OpId op) {
  return dynamic_update_slice(program.type(program.result(op)), operand(program, op, 1).shape);
}

}  // namespace

constexpr Prepare prepares::check_index = prepare_by<prepare_check>;
constexpr Prepare prepares::gather = prepare_by<prepare_gather>;
constexpr Prepare prepares::scatter = prepare_by<prepare_scatter>;
constexpr Prepare prepares::dynamic_slice = prepare_by<prepare_slice>;
constexpr Prepare prepares::dynamic_update_slice = prepare_by<prepare_update>;

}  // namespace weft::kernels
