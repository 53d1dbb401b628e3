#pragma once
/// What a test needs that comes to a job's door as a stranger.

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <weft/tests/fault/fault_process.hpp>

namespace weft::testing {

/// Of the workers of a job; "" where there is none.
inline std::string variable_of(const std::string& job, const std::string& name) {
  const auto processes = processes_of(job);
  if (processes.empty()) return {};
  std::ifstream file(fmt::format("/proc/{}/environ", processes.front()), std::ios::binary);
  for (std::string variable; std::getline(file, variable, '\0');) {
    if (variable.starts_with(name + "=")) return variable.substr(name.size() + 1);
  }
  return {};
}

/// What a worker says first.
inline std::string preamble(std::string_view magic, std::uint32_t version, std::string_view token) {
  std::string words(magic);
  words.append(reinterpret_cast<const char*>(&version), sizeof version);
  return words.append(token);
}

/// 32 bytes: operation, two of padding, flags; then payload_len, operation_data, two actors, in
/// network order. Some end a process that gives them to CAF 0.17.6.
inline std::string basp(char operation, std::uint32_t payload_bytes, char operation_data) {
  std::string frame(32, '\0');
  frame[0] = operation;
  for (int i = 0; i < 4; ++i) {
    frame[static_cast<std::size_t>(4 + i)] = static_cast<char>(payload_bytes >> (24 - 8 * i));
  }
  frame[15] = operation_data;
  return frame;
}

/// The pid at the end of "mark loop 4711".
inline pid_t marked(const std::string& line) { return std::stoi(line.substr(line.rfind(' '))); }

inline std::string trainer_log(const nlohmann::json& result) {
  std::ifstream file(result.at("path").get<std::string>() + "/trainer.log");
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::size_t times(std::string_view text, std::string_view words) {
  std::size_t found = 0;
  for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++found;
  return found;
}

}  // namespace weft::testing
