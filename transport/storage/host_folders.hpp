#pragma once
/// HostFolders: knows where the hosts of a job store its checkpoints: all in one folder, which they
/// share, or each host in a folder of its own, where it stores all of the state.
/// HostFolder: says what another host than host 0 has found in its folder.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft {

enum class HostStorage : std::uint8_t {
  unknown,   ///< no other host has looked yet
  shared,    ///< all hosts share the folder of host 0
  per_host,  ///< each host has a folder of its own
  none,      ///< the job has no mesh, or stores to a URL, so that no host needs to look
};

/// The largest number of checkpoints that host 0 offers to the others.
inline constexpr std::size_t kOfferedMax = 8;

/// A checkpoint of host 0. The other hosts look for their copies.
struct OfferedCheckpoint {
  std::uint64_t step = 0;
  std::string id{};  ///< id_of_copy()
  std::string path{};
};

struct HostFolder {
  std::int32_t host = -1;
  std::string machine{};
  std::string path{};
  bool is_shared = true;              ///< host 0 has the same folder
  std::uint64_t newest = 0;           ///< step of the newest checkpoint in it; 0: none
  std::vector<std::string> copies{};  ///< of the offered checkpoints; "": this host has none
};

/// Returns a text that only copies of the same checkpoint have in common: its save_id, or the hash
/// of its manifest, which is equal in copies made by hand. Throws the errors of read_manifest().
std::string id_of_copy(const std::string& checkpoint);

/// Returns for each offered checkpoint the path of its copy, which has all its files: in `folder`,
/// or if `also` isn't "", in that folder or at that path. Returns "" where there is none.
std::vector<std::string> find_copies(const std::string& folder, const std::string& also,
                                     std::span<const OfferedCheckpoint> offered);

class HostFolders {
 public:
  HostFolders(int num_hosts, HostStorage kind, const std::string& own);

  /// Returns why the job can't store its checkpoints so, if it can't. Else notes the folder.
  std::optional<std::string> add(const HostFolder& folder);
  HostStorage kind() const { return kind_; }
  bool are_per_host() const { return kind_ == HostStorage::per_host; }
  /// Returns the folders, by host; nothing unless each host has its own.
  std::vector<std::string> paths() const;

  /// Returns the paths of the copies of offered checkpoint `i`, by host. Hosts that haven't told
  /// their folders yet have "".
  std::vector<std::string> copies(std::span<const OfferedCheckpoint> offered, std::size_t i) const;
  /// Returns the first offered checkpoint of which each host that has told its folder has a copy.
  std::optional<std::size_t> first_common(std::size_t num_offered) const;
  /// Returns which hosts lack a copy of the offered checkpoint, and what to do. `offered` isn't
  /// empty.
  std::string missing_text(std::span<const OfferedCheckpoint> offered) const;
  /// Returns why the job can't begin at this step: a host's own folder has a later checkpoint.
  std::optional<std::string> refuse_begin(std::uint64_t step) const;

 private:
  std::string name(std::size_t host) const;

  HostStorage kind_;
  std::string own_;
  std::vector<std::optional<HostFolder>> others_;  ///< by host; host 0 has none
};

}  // namespace weft
