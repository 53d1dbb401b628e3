#include <weft/nn/transforms.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {

AutocastScope::AutocastScope(DType dtype, std::source_location loc)
    : trace_(Trace::current(loc)), before_(trace_.modes().autocast) {
  if (dtype != DType::bf16 && dtype != DType::f32) {
    fail(Errc::invalid_argument, "autocast: {}: expected bf16, or f32 for none (at {})",
         to_string(dtype), file_line(loc));
  }
  trace_.modes().autocast = dtype == DType::f32 ? std::nullopt : std::optional(dtype);
}

AutocastScope::~AutocastScope() { trace_.modes().autocast = before_; }

}  // namespace weft
