#pragma once
/// Buckets: all_reduces that the chips perform together, as torch's DDP does for gradients.

#include <cstdint>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft {

/// Consecutive all_reduces of a chip's program over the same atoms, of one kind and dtype. A plan
/// places their operands next to each other, and their results too. A bucket is then one range of
/// bytes, and nothing is copied.
struct Bucket {
  OpId first = 0;
  OpId count = 1;
};

/// A bucket of at least this many bytes takes no further operand, so that its data fits in a cache
/// when it is reduced.
inline constexpr std::int64_t kBucketBytes = std::int64_t{1} << 20;

/// Returns all buckets, in the program's order. Every all_reduce is in one bucket.
std::vector<Bucket> buckets(const Program& chip_program);

/// Returns the program with all_reduces delayed, at most to the first op that reads their results,
/// so that they are next to each other. Cheap ops that make their operands may move forward.
Program fill_buckets(const Program& chip_program);

}  // namespace weft
