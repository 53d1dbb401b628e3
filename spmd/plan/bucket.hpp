#pragma once
/// Buckets: all_reduces that the chips perform as one, as torch's DDP does with gradients.

#include <cstdint>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft {

/// Consecutive all_reduces of a chip's program over the same atoms, of one kind and dtype. A plan
/// lays their operands one behind the other, and their results, so that a bucket is one range of
/// bytes: nothing is copied.
struct Bucket {
  OpId first = 0;
  OpId count = 1;
};

/// A bucket takes no further operand once it has this many bytes: they are to be reduced from a
/// cache.
inline constexpr std::int64_t kBucketBytes = std::int64_t{1} << 20;

/// Every all_reduce is in one bucket, in the program's order.
std::vector<Bucket> buckets(const Program& chip_program);

/// The program with all_reduces moved, between what makes their operands and what reads their
/// results, so that those of different values come together.
Program fill_buckets(const Program& chip_program);

}  // namespace weft
