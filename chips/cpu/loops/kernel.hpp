#pragma once
/// Kernel: one op of a plan, prepared to run on one chip.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft::kernels {

/// The buffers of one run of a kernel, all dense and row-major. The result overlaps no operand,
/// except that an elementwise op may write exactly over one of them.
struct KernelArgs {
  std::array<const std::byte*, kOperandCountMax> operands{};
  std::byte* result = nullptr;
  std::byte* scratch = nullptr;  ///< Kernel::scratch_bytes, 64-byte aligned
  /// The largest number of elements that an elementwise op or a fill computes in this run.
  std::int64_t count_max = std::numeric_limits<std::int64_t>::max();
  /// For an elementwise op, by operand: true if all elements are equal, so that the op reads only
  /// the first. An op with several operands can have at most one such operand. For select, it can't
  /// be the predicate.
  std::array<bool, kOperandCountMax> is_fill{};
};

/// An op prepared to run: prepare() has decided everything that depends only on op and chip. `run`
/// works only on the calling thread and allocates nothing. The same operands give bitwise the same
/// result in every run. An element of an elementwise result depends only on the elements of the
/// operands with the same index, not on the index.
struct Kernel {
  std::function<void(const KernelArgs&)> run;
  std::size_t scratch_bytes = 0;
};

/// oneDNN's engine and stream. Each chip has one.
class MatmulStream;
std::shared_ptr<MatmulStream> make_matmul_stream();

/// The facts about a chip that prepare() of its ops may use.
struct ChipContext {
  const Mesh& mesh;
  int position = 0;
  std::shared_ptr<MatmulStream> stream;
};

/// Returns the kernel of any op except a collective. Throws unavailable, naming op, type and
/// location, if there is no kernel for the dtype.
Kernel prepare(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
