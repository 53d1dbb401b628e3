#pragma once
/// Words: formats numbers as the views show them.

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns how long something has lasted: "0.3 s", "41 s", "12 min 5 s", "3 h 20 min".
std::string seconds_text(double seconds);
/// Returns a measured time: "812 ns", "262 us", "2.10 ms", "1.68 s".
std::string time_text(double seconds);
/// Returns a rate: "348", "12.5", "0.25".
std::string per_second_text(double rate);
/// Returns a text such as "93 %".
std::string percent_text(double share);
/// Returns a metric: "0.1159", "nan".
std::string metric_text(double value);
/// Returns a text such as "512 B", "12.3 KiB", "4.6 MiB".
std::string bytes_text(std::int64_t bytes);
/// Returns a text such as "worker 2", "workers 0, 2-5".
std::string workers_text(const std::vector<int>& workers);
/// Returns a text such as "host 1 (node7): silent 7 s".
std::string silence_text(const HostSight& host);
/// Returns a text such as "0-3, 5".
std::string ranges_text(std::vector<int> numbers);

}  // namespace weft
