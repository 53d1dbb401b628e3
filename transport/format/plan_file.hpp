#pragma once
/// Plan file: encodes and decodes a plan as `WEFT_DUMP_TO` writes it and `weft plan` reads it.
///
///   plan file = envelope(Plan)           (schema/plan.fbs)
///
/// Version 1 had no steps and is refused. A new run of the program writes a plan of this version.

#include <cstddef>
#include <span>
#include <vector>

#include "data/files/envelope.hpp"
#include "spmd/plan/plan.hpp"

namespace weft {

inline constexpr Format kPlanFormat{"plan file", "weftplan", 2};
/// The maximum number of chips of a mesh read from a file.
inline constexpr std::int64_t kPlanChipCountMax = 1 << 16;
/// The maximum size of a plan file in bytes.
inline constexpr std::size_t kPlanBytesMax = std::size_t{1} << 30;

std::vector<std::byte> encode_plan(const Plan& plan);

/// Decodes a plan. `bytes` is the complete file, 8-byte aligned. Throws corrupt or version. Every
/// index, count, enumerator and type of the result is in range, and its mesh is valid. Only
/// verify(plan, mesh) checks whether the program makes sense.
Plan decode_plan(std::span<const std::byte> bytes);

}  // namespace weft
