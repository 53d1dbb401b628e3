#pragma once
/// The socket by which other programs of the user post commands to a job: `post` in its control
/// folder, of type SOCK_SEQPACKET. A connection has one message each way, JSON without a line end:
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
/// The maximum size of a request or an answer. It is larger than every valid one.
inline constexpr std::size_t kPostBytesMax = std::size_t{128} << 10;

/// Posts a command to a running job of this user, and waits for the answer: the step in which all
/// loops have read it. Returns nothing if `patience` is over first; the command stays posted.
/// Throws the job's error, not_found if no job of this id runs, io, and version if the job's
/// program doesn't have the socket.
std::optional<std::uint64_t> post_command(const std::string& job, const std::string& name,
                                          const nlohmann::json& payload,
                                          std::optional<std::chrono::milliseconds> patience);

}  // namespace weft
