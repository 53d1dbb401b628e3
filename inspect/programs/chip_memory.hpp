#pragma once
/// `weft inspect memory`: what a chip's memory is for, by the plan that it runs.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "inspect/programs/job_programs.hpp"

namespace weft {

/// Bytes that a chip takes for a program.
struct ChipMemory {
  std::int64_t inputs = 0;
  std::int64_t versions = 0;  ///< second ones, of state and of outputs that aren't written in place
  std::int64_t temporaries = 0;
  std::int64_t total() const { return inputs + versions + temporaries; }
};
/// `keeps_state`: in two versions, to go on after a loss.
ChipMemory memory_of(const Plan& plan, bool keeps_state);

/// A tensor that a program takes.
struct ChipTensor {
  std::string name{};
  InputKind kind{};
  TensorType global{};
  TensorType chip{};  ///< the chip's shard
};
/// The largest on a chip first.
std::vector<ChipTensor> tensors_of(const Plan& plan);

/// A program's memory, tensor by tensor. `resident_bytes`: what the job's chips have of the host's
/// memory now, all together; below 0: unknown.
std::string memory_text(const Snapshot& job, const JobProgram& program, const Plan& plan,
                        std::int64_t resident_bytes);
std::string memory_json(const Snapshot& job, const JobProgram& program, const Plan& plan,
                        std::int64_t resident_bytes);

}  // namespace weft
