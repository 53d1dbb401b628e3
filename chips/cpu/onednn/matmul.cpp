#include "chips/cpu/onednn/matmul.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "chips/cpu/loops/aligned_buffer.hpp"
#include "chips/cpu/loops/arithmetic.hpp"
#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/onednn/onednn.hpp"

namespace weft::kernels {

std::shared_ptr<MatmulStream> make_matmul_stream() { return std::make_shared<MatmulStream>(); }

namespace {

/// Describes an operand to oneDNN. Omits batch dims of size 1, because oneDNN 3 mistakes the
/// meaningless stride of such a dim for the stride of another dim.
dnnl::memory::desc describe(const Shape& batch, const Strides& batch_strides, std::int64_t rows,
                            std::int64_t columns, std::int64_t row, std::int64_t column,
                            DType dtype) {
  dnnl::memory::dims sizes;
  dnnl::memory::dims strides;
  for (int dim = 0; dim < batch.size(); ++dim) {
    if (batch[dim] == 1) continue;
    sizes.push_back(batch[dim]);
    strides.push_back(batch_strides[static_cast<std::size_t>(dim)]);
  }
  sizes.insert(sizes.end(), {rows, columns});
  strides.insert(strides.end(), {row, column});
  return {sizes, data_type_of(dtype), strides};
}

/// Multiplies by plain loops with ascending k. This is exact for integers, and its results in f64
/// are the reference.
template <typename T>
void multiply(const Matmul& matmul, int dim, const T* lhs, const T* rhs, T*& result) {
  if (dim < matmul.batch.size()) {
    const auto d = static_cast<std::size_t>(dim);
    for (std::int64_t i = 0; i < matmul.batch[dim]; ++i) {
      multiply(matmul, dim + 1, lhs + i * matmul.lhs.batch[d], rhs + i * matmul.rhs.batch[d],
               result);
    }
    return;
  }
  for (std::int64_t i = 0; i < matmul.m; ++i, result += matmul.n) {
    std::fill_n(result, matmul.n, T{0});
    for (std::int64_t k = 0; k < matmul.k; ++k) {
      const T a = lhs[i * matmul.lhs.row + k * matmul.lhs.column];
      const T* b = rhs + k * matmul.rhs.row;
      for (std::int64_t j = 0; j < matmul.n; ++j) {
        result[j] = Add{}(result[j], Multiply{}(a, b[j * matmul.rhs.column]));
      }
    }
  }
}

MatmulFunction in_one_call(const Matmul& matmul, DType dtype,
                           const std::shared_ptr<MatmulStream>& stream) {
  Strides result_strides{};
  std::int64_t stride = matmul.m * matmul.n;
  for (int dim = matmul.batch.size() - 1; dim >= 0; --dim) {
    result_strides[static_cast<std::size_t>(dim)] = stride;
    stride *= matmul.batch[dim];
  }
  try {
    const OneThread one_thread;
    const dnnl::matmul::primitive_desc chosen = choose_primitive<dnnl::matmul>(
        stream->engine,
        describe(matmul.batch, matmul.lhs.batch, matmul.m, matmul.k, matmul.lhs.row,
                 matmul.lhs.column, dtype),
        describe(matmul.batch, matmul.rhs.batch, matmul.k, matmul.n, matmul.rhs.row,
                 matmul.rhs.column, dtype),
        describe(matmul.batch, result_strides, matmul.m, matmul.n, matmul.n, 1, dtype));
    auto call = std::make_shared<OneDnnCall>(dnnl::matmul(chosen),
                                             std::initializer_list<OneDnnCall::Argument>{
                                                 {DNNL_ARG_SRC, chosen.src_desc()},
                                                 {DNNL_ARG_WEIGHTS, chosen.weights_desc()},
                                                 {DNNL_ARG_DST, chosen.dst_desc()},
                                                 {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()}},
                                             stream);
    auto scratchpad = std::make_shared<AlignedBuffer>(chosen.scratchpad_desc().get_size());
    return [call, scratchpad](const std::byte* lhs, const std::byte* rhs, std::byte* result) {
      call->run({lhs, rhs, result, scratchpad->data()});
    };
  } catch (const dnnl::error& error) {
    fail(Errc::unavailable, "oneDNN has no matmul of {}x{} by {}x{}: {}", matmul.m, matmul.k,
         matmul.k, matmul.n, error.what());
  }
}

/// Returns whether the strides of the batch dims never increase from one dim to the next.
bool descends(const Shape& batch, const Strides& strides) {
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  for (int dim = 0; dim < batch.size(); ++dim) {
    if (batch[dim] == 1) continue;
    const std::int64_t stride = strides[static_cast<std::size_t>(dim)];
    if (stride > last) return false;
    last = stride;
  }
  return true;
}

/// Multiplies by oneDNN. Because version 3.7.2 reads outside an operand if a batch dim has a
/// smaller stride than a later dim, the first dim then becomes a loop over several calls.
MatmulFunction by_onednn(const Matmul& matmul, DType dtype,
                         const std::shared_ptr<MatmulStream>& stream) {
  if (descends(matmul.batch, matmul.lhs.batch) && descends(matmul.batch, matmul.rhs.batch)) {
    return in_one_call(matmul, dtype, stream);
  }
  Matmul rest = matmul;
  rest.batch = Shape(std::span<const std::int64_t>(matmul.batch).subspan(1));
  for (Matmul::Operand* operand : {&rest.lhs, &rest.rhs}) {
    std::shift_left(operand->batch.begin(), operand->batch.end(), 1);
  }
  const std::int64_t bytes = byte_size(dtype);
  return [count = matmul.batch[0], lhs_step = matmul.lhs.batch[0] * bytes,
          rhs_step = matmul.rhs.batch[0] * bytes,
          result_step = rest.batch.num_elements() * matmul.m * matmul.n * bytes,
          call = by_onednn(rest, dtype, stream)](const std::byte* lhs, const std::byte* rhs,
                                                 std::byte* result) {
    for (std::int64_t i = 0; i < count; ++i) {
      call(lhs + i * lhs_step, rhs + i * rhs_step, result + i * result_step);
    }
  };
}

}  // namespace

DType multiplied_dtype(DType dtype) {
  static const bool has_bf16 = [] {
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    return (isa & wanted) == wanted;
  }();
  if (dtype == DType::bf16 && has_bf16) return dtype;
  return is_half(dtype) ? DType::f32 : dtype;
}

MatmulFunction prepare_matmul(const Matmul& matmul, DType dtype, const ChipContext& chip) {
  if (dtype == DType::f32 || dtype == DType::bf16) return by_onednn(matmul, dtype, chip.stream);
  return visit_dtype(dtype, [&]<typename T>(std::type_identity<T>) -> MatmulFunction {
    if constexpr (std::is_same_v<T, Compute<T>>) {
      return [matmul](const std::byte* lhs, const std::byte* rhs, std::byte* result) {
        T* out = as<T>(result);
        multiply(matmul, 0, as<T>(lhs), as<T>(rhs), out);
      };
    } else {
      return nullptr;
    }
  });
}

}  // namespace weft::kernels
