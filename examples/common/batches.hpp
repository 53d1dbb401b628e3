#pragma once
/// The order in which a classifier sees its images, and how well it names them.

#include <cstdint>
#include <span>
#include <vector>

namespace examples {

/// A permutation of 0..count-1: a function of seed and epoch alone.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::uint64_t epoch);

/// Share of the rows of `logits` whose largest entry is at the label.
double accuracy(std::span<const float> logits, std::span<const std::int32_t> labels);

}  // namespace examples
