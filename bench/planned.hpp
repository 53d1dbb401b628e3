#pragma once
/// Planned: runs a program as a chip does: as a plan, in its arena, on the calling thread.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "chips/cpu/executor.hpp"
#include "spmd/plan/plan.hpp"

namespace weft::bench {

class Planned {
 public:
  /// Makes a plan of `program`. All its inputs and outputs are zeros at first. If `donates`, an
  /// output that updates an input, and may overwrite it, uses the input's memory.
  explicit Planned(const Program& program, bool donates = false);

  void run() { executor_.run(plan_, ++step_, buffers_); }
  std::byte* input(std::size_t i) { return memory_.arena(0) + buffers_.inputs[i]; }

 private:
  Mesh mesh_{{1}, {"data"}};
  JobMemory memory_;
  Executor executor_;
  std::shared_ptr<const LoadedPlan> plan_;
  RunBuffers buffers_;
  std::uint64_t step_ = 0;
};

/// Makes an AdamW update of one parameter. The inputs are the parameter, its gradient, both
/// moments, and three scalars. Each output updates its input.
Program adamw(const Shape& shape);

}  // namespace weft::bench
