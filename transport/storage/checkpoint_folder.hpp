#pragma once
/// CheckpointFolder: finds, writes and removes the checkpoints in a folder. A checkpoint appears in
/// the folder atomically.
///
///   FOLDER/checkpoint_000640/manifest.weft, part-00003-of-00008.weft, ...
///   FOLDER/.tmp-000640-OWNER/      being written
///   FOLDER/.trash-...              being removed
///
/// Readers read only checkpoint_*. A writer has the CheckpointLock, so unfinished checkpoints of
/// other writers must be abandoned ones.
///
/// A folder may be a URL (checkpoint_objects.hpp). A checkpoint is then written to a local folder,
/// which also has the lock, and uploaded when it is complete. Writers on other machines aren't
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

/// Returns the complete checkpoints of a folder, by ascending step. If a step was saved several
/// times, returns only its last save. Returns none if the folder doesn't exist. Throws io if the
/// folder can't be read.
std::vector<CheckpointEntry> list_checkpoints(const std::string& folder);

/// Returns the checkpoints that list_checkpoints() leaves out, in order: the earlier saves of steps
/// that were saved again.
std::vector<std::string> list_replaced_checkpoints(const std::string& folder);

/// Reads the manifest of a checkpoint. Throws not_found if the path isn't a checkpoint's folder;
/// the message names the checkpoints in that folder, if there are any. Throws corrupt or version as
/// decode_manifest() does, with the path.
CheckpointManifest read_manifest(const std::string& checkpoint);

/// A lock by which jobs that write to the folder don't remove the checkpoint. The kernel releases
/// the lock when the process ends.
class ReadLock {
 public:
  /// Throws not_found if a job is removing the checkpoint or has removed it, and io.
  explicit ReadLock(const std::string& checkpoint);
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;
  ~ReadLock();

 private:
  int descriptor_;
};

/// A lock that gives the right to write to a folder of checkpoints. The kernel releases the lock
/// when the process ends.
class CheckpointLock {
 public:
  /// Makes the folder and takes the lock. Throws unavailable if another process has the lock; the
  /// message has the `owner` that the other process gave. Throws io.
  CheckpointLock(const std::string& folder, std::string_view owner);
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;
  ~CheckpointLock();

 private:
  int descriptor_ = -1;
};

// The following functions are for a job whose trainer has the lock.

/// Makes the folder and its parents so that they survive a power failure. For a URL, makes the
/// local folder in which checkpoints are written. Throws io.
void make_folders(const std::string& folder);
/// Returns the local folder in which the parts of a checkpoint are written. `owner` and `attempt`
/// distinguish saves.
std::string unfinished_path(const std::string& folder, std::uint64_t step, std::string_view owner,
                            std::uint64_t attempt);
/// Makes unfinished_path(), unless another worker has made it, and returns it.
std::string begin_checkpoint(FileSystem& files, const std::string& folder, std::uint64_t step,
                             std::string_view owner, std::uint64_t attempt);
/// Removes the folder `unfinished` and its content, if it exists. No worker may still write to it.
void drop_checkpoint(FileSystem& files, const std::string& unfinished);
/// Removes the unfinished checkpoints of earlier writers, except the one in `but`, which is a
/// result of begin_checkpoint(). For a URL, removes objects only if `but` is empty, because the
/// objects of a save in progress look like those of earlier writers.
void remove_unfinished(FileSystem& files, const std::string& folder, std::string_view but = "");
/// Writes the manifest beside the parts, which must be on disk already, and gives the checkpoint
/// its name. Returns the checkpoint's path. After that, the checkpoint survives a power failure.
/// After an error it may or may not exist.
std::string commit_checkpoint(FileSystem& files, const std::string& folder,
                              const std::string& unfinished, const CheckpointManifest& manifest);
/// Removes a checkpoint, which disappears for readers at the beginning of the call. If another
/// process has a ReadLock on the checkpoint, removes nothing and returns false.
bool remove_checkpoint(FileSystem& files, const std::string& path);

}  // namespace weft
