#pragma once
/// Writes results as a table for people and as JSON for programs.

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "bench/collectives/measure.hpp"

namespace weft::bench {

/// Prints the rows of one Measurement::run() as a table. Each row has its times, the share of the
/// limit that it reaches, and its time relative to weft's. The fastest peer is starred.
void print_rows(std::span<const Row> rows);

/// Returns {commit, machine, command, date, results: [row]}. In a row, missing times are null.
nlohmann::json report(std::span<const Row> rows, const std::string& command);

}  // namespace weft::bench
