#pragma once
/// Executed: a program that a WorkerRuntime has loaded, and what its runs need.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/runtime/arena_buffer.hpp"
#include "spmd/plan/plan.hpp"

namespace weft {

struct Executed {
  std::shared_ptr<const Plan> plan;
  std::uint64_t fingerprint = 0;      ///< low half of the program's fingerprint before compilation
  std::vector<ChipSet> overwriters;   ///< by output: the chips that may write it over the input
                                      ///< that it updates
  std::vector<std::size_t> places{};  ///< StateKeeper::place() of each input; unused for data
  /// The StateKeeper::revision() for which `places` is valid.
  std::uint64_t places_revision = 0;
  bool has_output_places = false;  ///< `places` is also valid for the outputs that update inputs
  std::uint64_t runs = 0;
};

}  // namespace weft
