#pragma once
/// What a benchmark's figures depend on, to stand beside them.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace weft::bench {

/// {commit, machine, command, date}. A commit with "-dirty": the sources are not of a commit.
nlohmann::json describe_run(const std::string& command);
/// It in a line, to stand below a table.
std::string machine_line(const nlohmann::json& run);

/// Writes a report of --json or --svg; nothing without a path. Throws io.
void write_report(const std::string& path, const std::string& text);

/// {median, p90, min, max}, of samples that are in any order; null for none.
nlohmann::json summarize(std::vector<double> samples);
double median(std::vector<double> samples);

}  // namespace weft::bench
