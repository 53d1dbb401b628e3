#pragma once
/// Helpers with which a test connects to a job's socket as a stranger.

#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/protocol/abi.hpp"
#include "tests/fault/fault_process.hpp"

namespace weft::testing {

/// Returns an environment variable of the job's workers; "" if it isn't set.
inline std::string variable_of(const std::string& job, const std::string& name) {
  const auto processes = processes_of(job);
  if (processes.empty()) return {};
  std::ifstream file(fmt::format("/proc/{}/environ", processes.front()), std::ios::binary);
  for (std::string variable; std::getline(file, variable, '\0');) {
    if (variable.starts_with(name + "=")) return variable.substr(name.size() + 1);
  }
  return {};
}

/// Returns the bytes with which a worker begins a connection.
inline std::string preamble(std::string_view magic, std::uint32_t version, std::string_view token) {
  std::string words(magic);
  words.append(reinterpret_cast<const char*>(&version), sizeof version);
  return words.append(token);
}

/// Builds a frame header of 32 bytes: operation, two bytes of padding, flags; then payload_len,
/// operation_data and two actors, in network order. Some of these frames crash a process that
/// passes them to CAF 0.17.6.
inline std::string basp(char operation, std::uint32_t payload_bytes, char operation_data) {
  std::string frame(32, '\0');
  frame[0] = operation;
  for (int i = 0; i < 4; ++i) {
    frame[static_cast<std::size_t>(4 + i)] = static_cast<char>(payload_bytes >> (24 - 8 * i));
  }
  frame[15] = operation_data;
  return frame;
}

/// Returns the pid at the end of "mark loop 4711".
inline pid_t marked(const std::string& line) { return std::stoi(line.substr(line.rfind(' '))); }

inline std::string trainer_log(const nlohmann::json& result) {
  std::ifstream file(result.at("path").get<std::string>() + "/trainer.log");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Sends random bytes, with a new `Caller` for each 64 KiB.
template <typename Caller, typename Place>
void expect_takes_random_bytes(const Place& place, std::size_t bytes) {
  std::mt19937_64 random(bytes);
  std::string block(1 << 16, '\0');
  for (std::size_t said = 0; said < bytes;) {
    for (std::size_t i = 0; i < block.size(); i += 8) {
      const std::uint64_t word = random();
      std::memcpy(block.data() + i, &word, sizeof word);
    }
    const Caller caller(place);
    ASSERT_TRUE(caller.connected()) << "the job doesn't listen any more";
    said += caller.say(block);
  }
}

/// Opens `count` connections, which in turn send one of `wholes` or only a beginning of `cut`.
/// Every second connection that sends a beginning stays open in `silent`.
template <typename Caller, typename Place>
void expect_takes_handshakes(const Place& place, int count, const std::vector<std::string>& wholes,
                             const std::string& cut, std::deque<Caller>& silent) {
  for (int i = 0; i < count; ++i) {
    Caller caller(place);
    ASSERT_TRUE(caller.connected()) << "the job doesn't listen any more";
    const auto number = static_cast<std::size_t>(i);
    const std::size_t kind = number % (wholes.size() + 2);
    if (kind < wholes.size()) {
      caller.say(wholes[kind]);
    } else {
      caller.say(std::string_view(cut).substr(0, number % cut.size()));
      if (kind == wholes.size()) silent.push_back(std::move(caller));
    }
  }
}

inline std::size_t times(std::string_view text, std::string_view words) {
  std::size_t found = 0;
  for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++found;
  return found;
}

}  // namespace weft::testing
