#pragma once
/// Numbers as the views show them.

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// "0.3 s", "41 s".
std::string seconds_text(double seconds);
/// "512 B", "12.3 KiB", "4.6 MiB".
std::string bytes_text(std::int64_t bytes);
/// "worker 2", "workers 0, 2-5".
std::string workers_text(const std::vector<int>& workers);
/// "0-3, 5".
std::string ranges_text(std::vector<int> numbers);

}  // namespace weft
