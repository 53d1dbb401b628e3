#pragma once
/// Executed: a program that a WorkerRuntime has loaded, with the facts that its runs need.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/runtime/arena_buffer.hpp"
#include "spmd/plan/plan.hpp"

namespace weft {

struct Executed {
  std::shared_ptr<const Plan> plan;
  std::uint64_t fingerprint = 0;      ///< low half; of the program as it was compiled and listed
  std::vector<ChipSet> overwriters;   ///< by output: chips that may write it over the input that it
                                      ///< updates
  std::vector<std::size_t> places{};  ///< by input: its StateKeeper::place(); unused for data
  std::uint64_t places_revision = 0;
  bool has_output_places = false;  ///< `places` also fits the outputs that update inputs
  std::uint64_t runs = 0;
};

}  // namespace weft
