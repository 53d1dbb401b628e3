#pragma once
/// What was measured, for people and for programs.

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "bench/collectives/measure.hpp"

namespace weft::bench {

/// The rows of one Measurement::run() as a table: per row its times, how much of the limit it
/// reaches and how many times as long as weft it takes. The fastest peer is starred.
void print_rows(std::span<const Row> rows);

/// {commit, machine, command, date, results: [row]}; times are null where there is none.
nlohmann::json report(std::span<const Row> rows, const std::string& command);

}  // namespace weft::bench
