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
/// except that the result of an elementwise op may be exactly in an operand's place.
struct KernelArgs {
  std::array<const std::byte*, kOperandCountMax> operands{};
  std::byte* result = nullptr;
  std::byte* scratch = nullptr;  ///< Kernel::scratch_bytes, 64-byte aligned
  /// The largest number of elements that an elementwise op or a fill computes in this run.
  std::int64_t count_max = std::numeric_limits<std::int64_t>::max();
  /// Indexed by operand of an elementwise op: true if all elements of the operand are equal and
  /// only the first is stored. At most one operand can be so, only if the op has several, and not
  /// the predicate of a select.
  std::array<bool, kOperandCountMax> is_fill{};
};

/// An op that is ready to run: prepare() has decided everything that depends only on op and chip.
/// `run` works only on the calling thread and allocates nothing. The same operands give bitwise the
/// same result in every run. Each element of an elementwise result depends only on the operands'
/// elements with the same index, not on the index itself.
struct Kernel {
  std::function<void(const KernelArgs&)> run;
  std::size_t scratch_bytes = 0;
};

/// oneDNN's engine and stream. Each chip has one.
class MatmulStream;
std::shared_ptr<MatmulStream> make_matmul_stream();

/// Tells prepare() about the chip that is to run an op.
struct ChipContext {
  const Mesh& mesh;
  int position = 0;
  std::shared_ptr<MatmulStream> stream;
};

/// Returns the kernel of any op except a collective. Throws unavailable, naming op, type and
/// location, if there is no kernel for the dtype.
Kernel prepare(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
