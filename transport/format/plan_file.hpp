#pragma once
/// Plan file: a plan in the form that `WEFT_DUMP_TO` writes and `weft plan` reads.
///
///   plan file = envelope(Plan)           (schema/plan.fbs)
///
/// Version 1 had no steps and is refused. If its program runs again, the program writes new plans.

#include <cstddef>
#include <span>
#include <vector>

#include "data/files/envelope.hpp"
#include "spmd/plan/plan.hpp"

namespace weft {

inline constexpr Format kPlanFormat{"plan file", "weftplan", 2};
/// The maximum number of chips of a mesh read from a file.
inline constexpr std::int64_t kPlanChipCountMax = 1 << 16;
/// The maximum size of a plan file.
inline constexpr std::size_t kPlanBytesMax = std::size_t{1} << 30;

std::vector<std::byte> encode_plan(const Plan& plan);

/// Decodes a plan. Throws corrupt or version. Every index, count, enumerator and type of the result
/// is in range, and its mesh is valid. Only verify(plan, mesh) checks that the program makes sense.
/// `bytes` is the whole file, 8-byte aligned.
Plan decode_plan(std::span<const std::byte> bytes);

}  // namespace weft
