#pragma once
/// A program as a chip runs it: as a plan, in its arena, on the calling thread.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "chips/cpu/executor.hpp"
#include "spmd/plan/plan.hpp"

namespace weft::bench {

class Planned {
 public:
  /// Its inputs and outputs are zeros at first. `donates`: an output that may be written over the
  /// input that it updates lies where that does.
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

/// An AdamW update of one parameter. Inputs: it, its gradient, both moments, three scalars. Each
/// output updates its input.
Program adamw(const Shape& shape);

}  // namespace weft::bench
