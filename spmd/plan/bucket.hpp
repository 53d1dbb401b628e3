#pragma once
/// Buckets: all_reduces that the chips perform together, as torch's DDP does for gradients.

#include <cstdint>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft {

/// Consecutive all_reduces of a chip's program over the same atoms, of one kind and dtype. A plan
/// places their operands next to each other, and their results too. The chips then reduce one range
/// of bytes, without copies.
struct Bucket {
  OpId first = 0;
  OpId count = 1;
};

/// A bucket of at least this many bytes takes no further operand, so that its data fits in a cache
/// when it is reduced.
inline constexpr std::int64_t kBucketBytes = std::int64_t{1} << 20;

/// Returns all buckets, in the program's order. Every all_reduce is in one bucket.
std::vector<Bucket> buckets(const Program& chip_program);

/// Returns the program in an order in which more all_reduces are next to each other. An all_reduce
/// moves back, at most to the first op that reads its result, and cheap ops that make operands of
/// all_reduces may move forward.
Program fill_buckets(const Program& chip_program);

}  // namespace weft
