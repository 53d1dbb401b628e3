#pragma once
/// HostList: the hosts of a job, and the commands that reach them. It is the file hosts.json in the
/// run folder, which host 0 writes and `weft inspect` reads.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// The environment variable with the words that users want before a command for another host, such
/// as "ssh -p 2222 {host}".
inline constexpr const char* kInspectViaVariable = "WEFT_INSPECT_VIA";

/// Identifies a host of a job, and the job's part on this host.
struct HostWhere {
  std::string machine{};  ///< the name by which the job's starter knows the host
  std::string boot_id{};  ///< the result of BlackBox::boot_id()
  std::uint64_t pid_namespace = 0;
  std::string memory_id{};  ///< the id in the names of the job's segments there
};

/// Returns where this process is. `memory_id` is the id of its job's segments.
HostWhere where_this_is(const std::string& memory_id);

struct HostEntry {
  HostWhere where{};
  std::vector<std::string> via{};  ///< words to put before a command for the host

  /// Returns whether this process can see the host's processes: it is on the same machine and in
  /// the same pid namespace.
  bool is_here() const;
};

struct HostList {
  std::string job{};
  std::vector<HostEntry> hosts{};  ///< by number; a host that hasn't joined yet has no memory_id

  /// Replaces the file in the run folder at once, so that readers never see an incomplete file.
  /// Throws io.
  void write(const std::string& run_dir) const;
  /// Reads the file; returns nothing if it doesn't exist. Throws corrupt with its path, and
  /// invalid_argument if another user could have written it, because its words are run as commands.
  static std::optional<HostList> read(const std::string& run_dir);
};

/// Returns the words to put before a command for `machine`. They come from WEFT_INSPECT_VIA or call
/// srun, kubectl or ssh, as the environment variables suggest. Throws invalid_argument if
/// WEFT_INSPECT_VIA lacks {host}, and for a name that no machine can have.
std::vector<std::string> via_of(const std::string& machine,
                                const std::function<const char*(const char*)>& variable);

}  // namespace weft
