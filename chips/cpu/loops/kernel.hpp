#pragma once
/// Kernel: one op of a plan, made ready to run on one chip.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include <weft/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft::kernels {

/// Dense row-major buffers. The result overlaps no operand, but an elementwise op may write exactly
/// over one of them.
struct KernelArgs {
  std::array<const std::byte*, kOperandCountMax> operands{};
  std::byte* result = nullptr;
  std::byte* scratch = nullptr;  ///< Kernel::scratch_bytes, 64-byte aligned
  /// For an elementwise op or a fill: computes at most this many elements.
  std::int64_t count_max = std::numeric_limits<std::int64_t>::max();
  /// For an elementwise op: by operand, that all elements are equal. At most one of an op with
  /// several operands, which then reads the first element alone; of select, not the predicate.
  std::array<bool, kOperandCountMax> is_fill{};
};

/// Everything that depends only on the op and the chip was decided in prepare(). Runs on the
/// calling thread alone and allocates nothing. The same operands give bitwise the same result in
/// every run, and an elementwise result depends on its own operands only, not on where they lie.
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

/// The kernel of any op but a collective. Throws unavailable, naming op, type and location, if
/// there is no kernel for the dtype.
Kernel prepare(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
