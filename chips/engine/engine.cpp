#include "chips/engine/engine.hpp"

#include <weft/tensor/error.hpp>

namespace weft {

void RunBuffers::require(std::size_t num_inputs, std::size_t num_outputs,
                         std::uint64_t step) const {
  if (inputs.size() == num_inputs && outputs.size() == num_outputs) return;
  fail(Errc::invalid_argument,
       "step {}: the plan has {} inputs and {} outputs, but buffers were given for {} and {}", step,
       num_inputs, num_outputs, inputs.size(), outputs.size());
}

bool RunBuffers::is_over_input(const Program& program, std::size_t output) const {
  const std::int32_t updates = program.outputs[output].updates;
  return updates >= 0 && inputs[static_cast<std::size_t>(updates)] == outputs[output];
}

}  // namespace weft
