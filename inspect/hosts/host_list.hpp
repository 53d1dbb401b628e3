#pragma once
/// HostList: the hosts of a job, and the commands that reach them: hosts.json in the run folder,
/// which host 0 writes and `weft inspect` reads.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// The variable with the words that users want before a command for another host, such as
/// "ssh -p 2222 {host}".
inline constexpr const char* kInspectViaVariable = "WEFT_INSPECT_VIA";

/// Identifies a host of a job and its part there.
struct HostWhere {
  std::string machine{};  ///< the name by which the job's starter knows it
  std::string boot_id{};  ///< see BlackBox::boot_id()
  std::uint64_t pid_namespace = 0;
  std::string memory_id{};  ///< names the job's segments there
};

/// Returns the place of this process, whose job's segments have this id.
HostWhere where_this_is(const std::string& memory_id);

struct HostEntry {
  HostWhere where{};
  std::vector<std::string> via{};  ///< the words before a command that shall run on the host

  /// Returns whether the host's processes are those of this machine and pid namespace.
  bool is_here() const;
};

struct HostList {
  std::string job{};
  std::vector<HostEntry> hosts{};  ///< by number; without memory_id: it hasn't joined yet

  /// Replaces the file in the run folder, which is never incomplete. Throws io.
  void write(const std::string& run_dir) const;
  /// Returns nothing if there is no such file. Throws corrupt, naming the file, and
  /// invalid_argument if another user could have written it, because its words are run as commands.
  static std::optional<HostList> read(const std::string& run_dir);
};

/// Returns the words before a command for `machine`: those of WEFT_INSPECT_VIA, of srun, of kubectl
/// or of ssh, as the variables of the environment suggest. Throws invalid_argument for a
/// WEFT_INSPECT_VIA without {host}, and for a name that no machine can have.
std::vector<std::string> via_of(const std::string& machine,
                                const std::function<const char*(const char*)>& variable);

}  // namespace weft
