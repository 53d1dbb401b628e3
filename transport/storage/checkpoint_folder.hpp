#pragma once
/// The folder of a run's checkpoints, and how a checkpoint appears in it: whole, or not at all.
///
///   FOLDER/checkpoint_000640/manifest.weft, part-00003-of-00008.weft, ...
///   FOLDER/.tmp-000640-OWNER/      being written
///   FOLDER/.trash-...              being removed
///
/// Readers look at checkpoint_* alone. Whoever writes holds a CheckpointLock, so that what another
/// writer left behind unfinished is known to be dead.
///
/// A folder may be a URL (checkpoint_objects.hpp). A checkpoint is then written in a folder of this
/// machine, which has the lock, too, and put when it is whole; jobs of other machines aren't
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

/// "part-00003-of-00008.weft".
std::string part_name(int part, int num_parts);

struct CheckpointEntry {
  std::uint64_t step = 0;
  std::string path{};

  friend bool operator==(const CheckpointEntry&, const CheckpointEntry&) = default;
};

/// The whole checkpoints of a folder by ascending step, of a step the one that was written last. A
/// folder that doesn't exist has none. Throws io if it can't be read.
std::vector<CheckpointEntry> list_checkpoints(const std::string& folder);

/// Those that it leaves out: of a step that was saved again, the earlier ones, in order.
std::vector<std::string> list_replaced_checkpoints(const std::string& folder);

/// Throws not_found if `checkpoint` isn't a checkpoint's folder (naming the checkpoints in it, if
/// it holds some), corrupt or version as decode_manifest() does, with the path.
CheckpointManifest read_manifest(const std::string& checkpoint);

/// While it lives, the checkpoint isn't removed by the jobs that write to its folder. The kernel
/// drops it with its process.
class ReadLock {
 public:
  /// Throws not_found if a job removes the checkpoint, or has; io.
  explicit ReadLock(const std::string& checkpoint);
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;
  ~ReadLock();

 private:
  int descriptor_;
};

/// The right to write to a folder of checkpoints; the kernel drops it with its process.
class CheckpointLock {
 public:
  /// Makes the folder. Throws unavailable if another process writes there, naming `owner` of that
  /// process; io.
  CheckpointLock(const std::string& folder, std::string_view owner);
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;
  ~CheckpointLock();

 private:
  int descriptor_ = -1;
};

// For the job whose trainer holds the lock.

/// Makes the folder and its parents, durably; of a URL, the one in which is written. Throws io.
void make_folders(const std::string& folder);
/// The folder of this machine in which the parts of a checkpoint are written. `owner` and `attempt`
/// tell saves apart.
std::string unfinished_path(const std::string& folder, std::uint64_t step, std::string_view owner,
                            std::uint64_t attempt);
/// Makes that folder, if no other worker has, and returns its path.
std::string begin_checkpoint(FileSystem& files, const std::string& folder, std::uint64_t step,
                             std::string_view owner, std::uint64_t attempt);
/// Removes it with all that is in it, if it is there. No worker writes to it any more.
void drop_checkpoint(FileSystem& files, const std::string& unfinished);
/// Removes what writers before have left unfinished, but not `but`, what begin_checkpoint()
/// returned. Under a URL, only where nothing is begun: what is put can't be told from it.
void remove_unfinished(FileSystem& files, const std::string& folder, std::string_view but = "");
/// Writes the manifest beside the parts, which are durable, and gives the checkpoint its name. It
/// is there once this has returned, even after a loss of power; after an error it may be there or
/// not. Returns its path.
std::string commit_checkpoint(FileSystem& files, const std::string& folder,
                              const std::string& unfinished, const CheckpointManifest& manifest);
/// Removes a checkpoint; readers no longer see it as soon as this has begun. False, and nothing is
/// removed, if somebody has a ReadLock of it.
bool remove_checkpoint(FileSystem& files, const std::string& path);

}  // namespace weft
