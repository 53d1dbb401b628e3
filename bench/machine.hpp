#pragma once
/// Describes the conditions of a benchmark run, to be reported with its results.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace weft::bench {

/// Returns {commit, machine, command, date}. A commit with "-dirty" means that the sources differ
/// from the commit.
nlohmann::json describe_run(const std::string& command);
/// Returns the description `run` as one line, for the end of a table.
std::string machine_line(const nlohmann::json& run);

/// Writes the report that --json or --svg asks for; does nothing if `path` is empty. Throws io.
void write_report(const std::string& path, const std::string& text);

/// Returns {median, p90, min, max} of samples in any order; null without samples.
nlohmann::json summarize(std::vector<double> samples);
double median(std::vector<double> samples);

}  // namespace weft::bench
