#pragma once
/// What a run says of itself when it has ended: numbers for people and for comparison.

#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace examples {

/// xxh3 of the names and elements of all parameters, in hex: equal for equal runs.
std::string digest(const weft::Module& net);

/// Median and 99th percentile of the steps' microseconds.
weft::Metrics summary(std::vector<double> step_us);

/// What the file that --json names holds.
std::string to_json(const weft::Result& result);

}  // namespace examples
