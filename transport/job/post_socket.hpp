#pragma once
/// PostSocket: the socket `post` in a job's control folder, by which other programs of the user
/// post commands. Its type is SOCK_SEQPACKET. A connection carries one message each way, JSON
/// without a line end:
///
///   request = {"name": "learning_rate", "payload": 0.01}
///   answer  = {"step": 120}  or  {"error": "overloaded", "message": "the command ..."}

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace weft {

inline std::string post_socket_in(const std::string& folder) { return folder + "/post"; }
/// The size in bytes of the largest request or answer. Every valid one is smaller.
inline constexpr std::size_t kPostBytesMax = std::size_t{128} << 10;

/// Posts a command to a running job of this user, and waits for the answer: the step in which all
/// loops have read the command. Returns nothing if `patience` is over first; the command stays
/// posted. Throws the job's error, not_found if no job with this id runs, io, and version if the
/// job's program doesn't have the socket.
std::optional<std::uint64_t> post_command(const std::string& job, const std::string& name,
                                          const nlohmann::json& payload,
                                          std::optional<std::chrono::milliseconds> patience);

}  // namespace weft
