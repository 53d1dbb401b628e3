#pragma once
/// Finds the processes that a program has started.

#include <sys/types.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace weft::testing {

/// Returns the living processes that the process has started: workers, and processes of actors.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    const std::size_t end = stat.rfind(')');  // the end of the program's name
    if (end == std::string::npos || end + 4 > stat.size() || stat[end + 2] == 'Z') continue;
    if (std::strtol(stat.c_str() + end + 4, nullptr, 10) == parent) {
      children.push_back(static_cast<pid_t>(std::stol(name)));
    }
  }
  return children;
}

}  // namespace weft::testing
