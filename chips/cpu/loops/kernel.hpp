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

/// Dense row-major buffers. The result overlaps no operand, except that an elementwise op may write
/// exactly over one of them.
struct KernelArgs {
  std::array<const std::byte*, kOperandCountMax> operands{};
  std::byte* result = nullptr;
  std::byte* scratch = nullptr;  ///< Kernel::scratch_bytes, 64-byte aligned
  /// An elementwise op or a fill computes at most this many elements.
  std::int64_t count_max = std::numeric_limits<std::int64_t>::max();
  /// For an elementwise op, by operand: all its elements are equal, so the op reads only the first.
  /// At most one operand of an op with several can be such a fill; for select, it isn't the
  /// predicate.
  std::array<bool, kOperandCountMax> is_fill{};
};

/// Everything that depends only on the op and the chip was decided in prepare(). `run` works only
/// on the calling thread and allocates nothing. The same operands give bitwise the same result in
/// every run. An elementwise result depends only on its own operands, not on their places.
struct Kernel {
  std::function<void(const KernelArgs&)> run;
  std::size_t scratch_bytes = 0;
};

/// oneDNN's engine and stream; one per chip.
class MatmulStream;
std::shared_ptr<MatmulStream> make_matmul_stream();

/// The facts about a chip that the ops on it may read.
struct ChipContext {
  const Mesh& mesh;
  int position = 0;
  std::shared_ptr<MatmulStream> stream;
};

/// Returns the kernel of any op except a collective. Throws unavailable, naming op, type and
/// location, if there is no kernel for the dtype.
Kernel prepare(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
