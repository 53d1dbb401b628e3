#pragma once
/// Mixed precision (torch.autocast): parameters stay f32, matrix products are of bf16.

#include <optional>
#include <source_location>
#include <utility>

#include <weft/spmd/program/type.hpp>

namespace weft {

class Trace;

/// While it lives, matmul, linear, conv2d and attention of this thread take their f32 operands as
/// `dtype` and give it, with sums in f32; norms, softmax and losses take their operands as f32; of
/// two operands of different floating dtypes an op converts the narrower one. Gradients are of the
/// tensors' own dtypes, and bf16 has f32's range: there is no loss to scale. Throws
/// invalid_argument for a dtype but bf16 and f32, which switches it off.
class AutocastScope {
 public:
  explicit AutocastScope(DType dtype, std::source_location loc = std::source_location::current());
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  Trace& trace_;
  std::optional<DType> before_;
};

/// What `function` returns, called in an AutocastScope.
template <typename Function>
auto autocast(DType dtype, Function&& function,
              std::source_location loc = std::source_location::current()) {
  const AutocastScope scope(dtype, loc);
  return std::forward<Function>(function)();
}

}  // namespace weft
