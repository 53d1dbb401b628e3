#pragma once
/// The folder of a run's checkpoints. A checkpoint appears in it atomically.
///
///   FOLDER/checkpoint_000640/manifest.weft, part-00003-of-00008.weft, ...
///   FOLDER/.tmp-000640-OWNER/      being written
///   FOLDER/.trash-...              being removed
///
/// Readers look only at checkpoint_*. A writer holds a CheckpointLock, so an unfinished checkpoint
/// of another writer is known to be abandoned.
///
/// A folder may be a URL (checkpoint_objects.hpp). A checkpoint is then written in a folder of this
/// machine, which also has the lock, and uploaded when it is whole. Jobs of other machines aren't
/// noticed.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/files/file_system.hpp"
#include "transport/format/checkpoint_manifest.hpp"

namespace weft {

inline constexpr std::string_view kManifestName = "manifest.weft";
inline constexpr std::string_view kCheckpointPrefix = "checkpoint_";

/// Returns a name such as "part-00003-of-00008.weft".
std::string part_name(int part, int num_parts);

struct CheckpointEntry {
  std::uint64_t step = 0;
  std::string path{};

  friend bool operator==(const CheckpointEntry&, const CheckpointEntry&) = default;
};

/// Returns the whole checkpoints of a folder by ascending step. If a step was saved several times,
/// only the last save is returned. A folder that doesn't exist has none. Throws io if it can't be
/// read.
std::vector<CheckpointEntry> list_checkpoints(const std::string& folder);

/// Returns the checkpoints that list_checkpoints() leaves out: the earlier saves of steps that were
/// saved again, in order.
std::vector<std::string> list_replaced_checkpoints(const std::string& folder);

/// Throws not_found if `checkpoint` isn't a checkpoint's folder; if it is a folder of checkpoints,
/// the message names them. Throws corrupt or version as decode_manifest() does, with the path.
CheckpointManifest read_manifest(const std::string& checkpoint);

/// While it lives, jobs that write to the folder don't remove the checkpoint. The kernel releases
/// it with its process.
class ReadLock {
 public:
  /// Throws not_found if a job is removing the checkpoint or has removed it. Throws io.
  explicit ReadLock(const std::string& checkpoint);
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;
  ~ReadLock();

 private:
  int descriptor_;
};

/// The right to write to a folder of checkpoints. The kernel releases it with its process.
class CheckpointLock {
 public:
  /// Makes the folder. Throws unavailable if another process writes there, with the `owner` of that
  /// process. Throws io.
  CheckpointLock(const std::string& folder, std::string_view owner);
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;
  ~CheckpointLock();

 private:
  int descriptor_ = -1;
};

// The following functions are for the job whose trainer holds the lock.

/// Makes the folder and its parents, durably. For a URL, makes the local folder in which
/// checkpoints are written. Throws io.
void make_folders(const std::string& folder);
/// Returns the folder of this machine in which the parts of a checkpoint are written. `owner` and
/// `attempt` distinguish saves.
std::string unfinished_path(const std::string& folder, std::uint64_t step, std::string_view owner,
                            std::uint64_t attempt);
/// Makes that folder, if no other worker has, and returns its path.
std::string begin_checkpoint(FileSystem& files, const std::string& folder, std::uint64_t step,
                             std::string_view owner, std::uint64_t attempt);
/// Removes the folder with its content, if it exists. No worker may write to it any more.
void drop_checkpoint(FileSystem& files, const std::string& unfinished);
/// Removes unfinished checkpoints of earlier writers, except `but`, a result of begin_checkpoint().
/// Under a URL, it removes objects only if `but` is empty, because it can't distinguish them from
/// objects of a save in progress.
void remove_unfinished(FileSystem& files, const std::string& folder, std::string_view but = "");
/// Writes the manifest beside the parts, which are durable, and gives the checkpoint its name. When
/// this has returned, the checkpoint exists even after a loss of power. After an error it may exist
/// or not. Returns its path.
std::string commit_checkpoint(FileSystem& files, const std::string& folder,
                              const std::string& unfinished, const CheckpointManifest& manifest);
/// Removes a checkpoint. Readers no longer see it when this has begun. If another process has a
/// ReadLock of it, removes nothing and returns false.
bool remove_checkpoint(FileSystem& files, const std::string& path);

}  // namespace weft
