#pragma once
/// HostFolders: where the hosts of a job store its checkpoints: all in one folder that they share,
/// or each host in its own folder, with all of the state. HostFolder: what a host other than host 0
/// has found in its folder.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft {

enum class HostStorage : std::uint8_t {
  unknown,   ///< no other host has checked its folder yet
  shared,    ///< all hosts share the folder of host 0
  per_host,  ///< each host has its own folder
  none,      ///< no host needs to check: the job has no mesh, or stores to a URL
};

/// The most checkpoints that host 0 offers to the other hosts.
inline constexpr std::size_t kOfferedMax = 8;

/// A checkpoint of host 0. The other hosts search for their copies of it.
struct OfferedCheckpoint {
  std::uint64_t step = 0;
  std::string id{};  ///< result of id_of_copy()
  std::string path{};
};

struct HostFolder {
  std::int32_t host = -1;
  std::string machine{};
  std::string path{};
  bool is_shared = true;              ///< whether it is also the folder of host 0
  std::uint64_t newest = 0;           ///< step of the newest checkpoint in the folder; 0: none
  std::vector<std::string> copies{};  ///< paths of copies of the offered checkpoints; "": no copy
};

/// Returns a text that only copies of the same checkpoint have in common: the checkpoint's save_id,
/// or the hash of its manifest, which is equal in copies made by hand. Throws the errors of
/// read_manifest().
std::string id_of_copy(const std::string& checkpoint);

/// Returns for each offered checkpoint the path of a copy with all its files, or "" if there is
/// none. Searches `folder` and, if `also` isn't "", also the folder or checkpoint `also`.
std::vector<std::string> find_copies(const std::string& folder, const std::string& also,
                                     std::span<const OfferedCheckpoint> offered);

class HostFolders {
 public:
  HostFolders(int num_hosts, HostStorage kind, const std::string& own);

  /// Adds a host's folder. Returns a reason if the job can't store its checkpoints there; the
  /// folder is then not added.
  std::optional<std::string> add(const HostFolder& folder);
  HostStorage kind() const { return kind_; }
  bool are_per_host() const { return kind_ == HostStorage::per_host; }
  /// Returns the folders, by host; nothing unless each host has its own folder.
  std::vector<std::string> paths() const;

  /// Returns the paths of the copies of offered checkpoint `i`, by host. The path is "" for hosts
  /// that haven't reported their folders yet.
  std::vector<std::string> copies(std::span<const OfferedCheckpoint> offered, std::size_t i) const;
  /// Returns the first offered checkpoint that has copies on all hosts that have reported their
  /// folders.
  std::optional<std::size_t> first_common(std::size_t num_offered) const;
  /// Returns a text that says which hosts lack copies of the offered checkpoints, and what to do.
  /// `offered` must not be empty.
  std::string missing_text(std::span<const OfferedCheckpoint> offered) const;
  /// Returns why the job can't begin at this step, if a host's own folder has a later checkpoint.
  std::optional<std::string> refuse_begin(std::uint64_t step) const;

 private:
  std::string name(std::size_t host) const;

  HostStorage kind_;
  std::string own_;
  std::vector<std::optional<HostFolder>> others_;  ///< by host; host 0 has none
};

}  // namespace weft
