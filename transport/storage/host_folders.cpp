#include "transport/storage/host_folders.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "data/files/envelope.hpp"
#include "data/files/file_bytes.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"

namespace weft {
namespace {

/// Returns the checkpoints in the folder, including earlier saves of steps that were saved again.
std::vector<std::string> all_in(const std::string& folder) {
  std::vector<std::string> paths = list_replaced_checkpoints(folder);
  for (CheckpointEntry& entry : list_checkpoints(folder)) paths.push_back(std::move(entry.path));
  return paths;
}

}  // namespace

std::string id_of_copy(const std::string& checkpoint) {
  CheckpointManifest manifest = read_manifest(checkpoint);
  if (!manifest.save_id.empty()) return std::move(manifest.save_id);
  const std::string path = checkpoint + "/" + std::string(kManifestName);
  return fmt::format("manifest-{:016x}", xxh3(read_file_bytes(path, kManifestBytesMax)));
}

std::vector<std::string> find_copies(const std::string& folder, const std::string& also,
                                     std::span<const OfferedCheckpoint> offered) {
  std::vector<std::string> copies(offered.size());
  if (offered.empty()) return copies;
  std::vector<std::string> paths = all_in(folder);
  if (!also.empty()) {
    for (std::string& path : all_in(also)) paths.push_back(std::move(path));
    paths.push_back(also);
  }
  for (const std::string& path : paths) {
    try {
      const CheckpointManifest manifest = read_manifest(path);
      const auto is_step = [&](const OfferedCheckpoint& one) { return one.step == manifest.step; };
      if (std::ranges::none_of(offered, is_step)) continue;
      require_files(path, manifest);
      const auto found = std::ranges::find(offered, id_of_copy(path), &OfferedCheckpoint::id);
      if (found != offered.end()) copies[static_cast<std::size_t>(found - offered.begin())] = path;
    } catch (const Error&) {  // a checkpoint that can't be read is no copy
    }
  }
  return copies;
}

HostFolders::HostFolders(int num_hosts, HostStorage kind, const std::string& own)
    : kind_(kind), own_(own), others_(static_cast<std::size_t>(num_hosts)) {}

std::string HostFolders::name(std::size_t host) const {
  return host == 0
             ? fmt::format("host 0 ({})", own_)
             : fmt::format("host {} ({}, {})", host, others_[host]->machine, others_[host]->path);
}

std::optional<std::string> HostFolders::add(const HostFolder& folder) {
  if (kind_ == HostStorage::none) return {};
  const HostStorage kind = folder.is_shared ? HostStorage::shared : HostStorage::per_host;
  if (kind_ != HostStorage::unknown && kind != kind_) {
    return fmt::format(
        "host {} ({}) {} the folder of checkpoints {} of host 0, but {}: give all hosts one folder "
        "that they share, or each its own, in run.checkpoint.path or run.storage_path (that of "
        "host {} is {})",
        folder.host, folder.machine, folder.is_shared ? "shares" : "doesn't see", own_,
        folder.is_shared ? "another host doesn't" : "the other hosts do", folder.host, folder.path);
  }
  kind_ = kind;
  others_.at(static_cast<std::size_t>(folder.host)) = folder;
  return {};
}

std::vector<std::string> HostFolders::paths() const {
  if (!are_per_host()) return {};
  std::vector<std::string> paths{own_};
  for (std::size_t host = 1; host < others_.size(); ++host) {
    paths.push_back(others_[host] ? others_[host]->path : "");
  }
  return paths;
}

std::vector<std::string> HostFolders::copies(std::span<const OfferedCheckpoint> offered,
                                             std::size_t i) const {
  std::vector<std::string> copies{offered[i].path};
  for (std::size_t host = 1; host < others_.size(); ++host) {
    const bool has = others_[host] && i < others_[host]->copies.size();
    copies.push_back(has ? others_[host]->copies[i] : "");
  }
  return copies;
}

std::optional<std::size_t> HostFolders::first_common(std::size_t num_offered) const {
  for (std::size_t i = 0; i < num_offered; ++i) {
    const auto lacks = [&](const std::optional<HostFolder>& other) {
      return other && (i >= other->copies.size() || other->copies[i].empty());
    };
    if (std::ranges::none_of(others_, lacks)) return i;
  }
  return {};
}

std::string HostFolders::missing_text(std::span<const OfferedCheckpoint> offered) const {
  std::vector<std::string> hosts;
  for (std::size_t host = 1; host < others_.size(); ++host) {
    if (others_[host] && copies(offered, 0)[host].empty()) hosts.push_back(name(host));
  }
  return fmt::format(
      "the hosts share no folder of checkpoints, and {} no whole copy of {} of host 0, from which "
      "the job continues: copy it there, or move it away on host 0 to continue from an earlier "
      "one",
      hosts.size() == 1 ? hosts.front() + " has" : fmt::format("{} have", fmt::join(hosts, ", ")),
      offered.front().path);
}

std::optional<std::string> HostFolders::refuse_begin(std::uint64_t step) const {
  for (std::size_t host = 1; host < others_.size(); ++host) {
    if (!are_per_host() || !others_[host] || others_[host]->newest <= step) continue;
    return fmt::format(
        "the hosts share no folder of checkpoints, and {} has a checkpoint of step {}, but host 0 "
        "({}) begins at step {}: copy the checkpoint to host 0 and set run.resume to \"auto\", or "
        "move it away",
        name(host), others_[host]->newest, own_, step);
  }
  return {};
}

}  // namespace weft
