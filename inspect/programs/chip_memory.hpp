#pragma once
/// ChipMemory: makes the data of `weft inspect memory`: what a chip needs memory for, by the plan
/// that it runs.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "inspect/programs/job_programs.hpp"

namespace weft {

/// The bytes that a chip needs for a program.
struct ChipMemory {
  std::int64_t inputs = 0;
  std::int64_t versions = 0;  ///< second versions of state and of outputs not written in place
  std::int64_t temporaries = 0;
  std::int64_t total() const { return inputs + versions + temporaries; }
};
/// Returns the memory that a plan needs on each chip. If `keeps_state`, state has two versions, so
/// that the job can continue after a worker has died.
ChipMemory memory_of(const Plan& plan, bool keeps_state);

/// A tensor that is an input of a program.
struct ChipTensor {
  std::string name{};
  InputKind kind{};
  TensorType global{};
  TensorType chip{};  ///< the chip's shard
};
/// Returns a program's inputs, in descending order of their shards' bytes.
std::vector<ChipTensor> tensors_of(const Plan& plan);

/// Returns a program's memory as text, tensor by tensor. `resident_bytes` is the host memory that
/// all chips of the job have now; negative if unknown.
std::string memory_text(const Snapshot& job, const JobProgram& program, const Plan& plan,
                        std::int64_t resident_bytes);
std::string memory_json(const Snapshot& job, const JobProgram& program, const Plan& plan,
                        std::int64_t resident_bytes);

}  // namespace weft
