#include "transport/storage/checkpoint_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "data/files/plain_file.hpp"
#include "data/remote/object_cache.hpp"
#include "data/remote/storages.hpp"
#include "transport/storage/checkpoint_objects.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnfinished = ".tmp-";
constexpr std::string_view kTrash = ".trash-";
constexpr const char* kLockName = ".lock";
/// The number of names that are tried to find a free one. A few are enough, because only processes
/// without the lock can take a name in the meantime.
constexpr int kRenamesMax = 100;

/// Returns "checkpoint_000640" for the first save of the step, "checkpoint_000640-2" for the third.
std::string checkpoint_name(std::uint64_t step, int save) {
  return save == 0 ? fmt::format("{}{:06}", kCheckpointPrefix, step)
                   : fmt::format("{}{:06}-{}", kCheckpointPrefix, step, save);
}

struct ParsedName {
  std::uint64_t step = 0;
  int save = 0;
};

std::optional<ParsedName> parse_name(std::string_view name) {
  if (!name.starts_with(kCheckpointPrefix)) return std::nullopt;
  ParsedName parsed;
  const char* const end = name.data() + name.size();
  const auto step = std::from_chars(name.data() + kCheckpointPrefix.size(), end, parsed.step);
  if (step.ec != std::errc()) return std::nullopt;
  if (step.ptr != end) {
    if (*step.ptr != '-') return std::nullopt;
    const auto save = std::from_chars(step.ptr + 1, end, parsed.save);
    if (save.ec != std::errc() || save.ptr != end || parsed.save < 1) return std::nullopt;
  }
  return parsed;
}

/// Returns the local folder in which checkpoints are written before they appear in `folder`.
std::string writing_folder(const std::string& folder) {
  return is_remote(folder) ? staging_folder(folder) : folder;
}

std::vector<std::string> names_in(const std::string& folder) {
  if (is_remote(folder)) return list_checkpoint_objects(folder).whole;
  require_local_path(folder);
  std::error_code error;
  if (!fs::exists(folder, error) && !error) return {};
  std::vector<std::string> names;
  for (FolderEntry& entry : posix_file_system().list(folder))
    names.push_back(std::move(entry.name));
  return names;
}

/// Returns whether the path exists. If the system can't tell, for instance because the path is a
/// link to itself, returns false.
bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string parent_of(const std::string& path) {
  const auto parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string manifest_path(const std::string& checkpoint) {
  return checkpoint + "/" + std::string(kManifestName);
}

/// Returns the paths of all complete checkpoints, by step and by number of the save.
std::map<std::uint64_t, std::map<int, std::string>> saves_in(const std::string& folder) {
  std::map<std::uint64_t, std::map<int, std::string>> found;
  for (const std::string& name : names_in(folder)) {
    const auto parsed = parse_name(name);
    std::string path = folder + "/" + name;
    // A checkpoint without a manifest isn't complete. For instance, a user may still be copying it.
    if (!parsed || (!is_remote(folder) && !is_there(manifest_path(path)))) continue;
    found[parsed->step].emplace(parsed->save, std::move(path));
  }
  return found;
}

/// An open file with a lock on it. On file systems that have no locks, the file isn't locked.
class LockedFile {
 public:
  /// Tries to lock the file, without waiting for another process. `how` is an argument of flock().
  LockedFile(int descriptor, int how) : number_(descriptor) {
    is_refused_ = number_ >= 0 && ::flock(number_, how | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile() {
    if (number_ >= 0) ::close(number_);
  }
  bool is_refused() const { return is_refused_; }
  bool is_linked() const {
    struct stat status {};
    return ::fstat(number_, &status) == 0 && status.st_nlink > 0;
  }
  int take() { return std::exchange(number_, -1); }

 private:
  int number_;
  bool is_refused_ = false;
};

/// Returns a number larger than the numbers of all earlier saves of the step, so that the last save
/// has the largest number.
int next_save(const std::string& folder, std::uint64_t step) {
  int next = 0;
  for (const std::string& name : names_in(folder)) {
    const auto parsed = parse_name(name);
    if (parsed && parsed->step == step) next = std::max(next, parsed->save + 1);
  }
  return next;
}

void remove_files(FileSystem& files, const std::string& folder) {
  for (const FolderEntry& entry : files.list(folder)) {
    const std::string path = folder + "/" + entry.name;
    if (entry.is_folder) {
      remove_files(files, path);
    } else {
      files.remove_file(path);
    }
  }
  files.remove_folder(folder);
}

}  // namespace

std::string part_name(int part, int num_parts) {
  return fmt::format("part-{:05}-of-{:05}.weft", part, num_parts);
}

std::vector<CheckpointEntry> list_checkpoints(const std::string& folder) {
  std::vector<CheckpointEntry> entries;
  for (auto& [step, saves] : saves_in(folder)) {
    entries.push_back({step, std::move(saves.rbegin()->second)});
  }
  return entries;
}

std::vector<std::string> list_replaced_checkpoints(const std::string& folder) {
  std::vector<std::string> paths;
  for (auto& [step, saves] : saves_in(folder)) {
    saves.erase(std::prev(saves.end()));
    for (auto& [save, path] : saves) paths.push_back(std::move(path));
  }
  return paths;
}

CheckpointManifest read_manifest(const std::string& checkpoint) {
  const std::string path = manifest_path(checkpoint);
  const StoragePtr storage = find_storage(path);
  std::error_code error;
  const bool is_absent = storage != nullptr
                             ? !storage->open(path)
                             : !is_there(path) && !fs::is_symlink(fs::symlink_status(path, error));
  if (is_absent) {
    const auto within = list_checkpoints(checkpoint);
    const std::string hint =
        within.empty()
            ? ""
            : fmt::format("; it holds checkpoints, the last of them {}", within.back().path);
    fail(Errc::not_found, "{} isn't a checkpoint: it has no {}{}", checkpoint, kManifestName, hint);
  }
  const std::vector<std::byte> bytes = storage != nullptr
                                           ? read_object(path, kManifestBytesMax)
                                           : read_file_bytes(path, kManifestBytesMax);
  try {
    return decode_manifest(bytes);
  } catch (const Error& e) {
    fail(e.code(), "{}: {}", path, e.what());
  }
}

void make_folders(const std::string& folder) {
  if (is_remote(folder)) return make_folders(staging_folder(folder));
  require_local_path(folder);
  std::error_code error;
  if (fs::is_directory(folder, error)) return;
  const fs::path path = fs::absolute(folder);
  if (path.has_relative_path()) make_folders(path.parent_path().string());
  fs::create_directory(path, error);
  if (error) fail(Errc::io, "can't make {}: {}", path.string(), error.message());
  posix_file_system().sync_folder(path.parent_path().string());
}

ReadLock::ReadLock(const std::string& checkpoint) {
  const auto fail_removed = [&] {
    fail(Errc::not_found,
         "{} is being removed: the job that writes there keeps only later checkpoints", checkpoint);
  };
  try {
    LockedFile file(open_plain_file(manifest_path(checkpoint)), LOCK_SH);
    // The lock is refused if another process is removing the checkpoint.
    if (file.is_refused() || !file.is_linked()) fail_removed();
    descriptor_ = file.take();
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
    fail_removed();
  }
}

ReadLock::~ReadLock() { ::close(descriptor_); }

CheckpointLock::CheckpointLock(const std::string& folder, std::string_view owner) {
  make_folders(folder);
  const std::string path = writing_folder(folder) + "/" + kLockName;
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(Errc::io, "can't open {}: {}", path, std::strerror(errno));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    std::array<char, 256> other{};
    const ssize_t size = ::pread(descriptor_, other.data(), other.size(), 0);
    ::close(descriptor_);
    fail(Errc::unavailable,
         "{} is in use: {} writes its checkpoints there; give each job a folder of its own", folder,
         size > 0 ? std::string_view(other.data(), static_cast<std::size_t>(size)) : "another job");
  }
  // The owner is written only so that the error message above can name the owner.
  if (::ftruncate(descriptor_, 0) == 0) {
    [[maybe_unused]] const auto said = ::pwrite(descriptor_, owner.data(), owner.size(), 0);
  }
}

CheckpointLock::~CheckpointLock() { ::close(descriptor_); }

void remove_unfinished(FileSystem& files, const std::string& folder, std::string_view but) {
  if (is_remote(folder)) {
    remove_unfinished(files, staging_folder(folder), but);
    if (!but.empty()) return;
    for (const std::string& name : list_checkpoint_objects(folder).unfinished) {
      if (parse_name(name)) remove_checkpoint_objects(folder + "/" + name);
    }
    return;
  }
  for (const std::string& name : names_in(folder)) {
    const std::string path = folder + "/" + name;
    const bool is_unfinished = name.starts_with(kUnfinished) || name.starts_with(kTrash);
    if (!is_unfinished || path == but) continue;
    if (fs::is_directory(fs::symlink_status(path))) remove_files(files, path);
  }
}

std::string unfinished_path(const std::string& folder, std::uint64_t step, std::string_view owner,
                            std::uint64_t attempt) {
  return fmt::format("{}/{}{:06}-{}-{}", writing_folder(folder), kUnfinished, step, owner, attempt);
}

std::string begin_checkpoint(FileSystem& files, const std::string& folder, std::uint64_t step,
                             std::string_view owner, std::uint64_t attempt) {
  std::string path = unfinished_path(folder, step, owner, attempt);
  files.create_folder(path);
  return path;
}

void drop_checkpoint(FileSystem& files, const std::string& unfinished) {
  if (is_there(unfinished)) remove_files(files, unfinished);
}

std::string commit_checkpoint(FileSystem& files, const std::string& folder,
                              const std::string& unfinished, const CheckpointManifest& manifest) {
  const int next = next_save(folder, manifest.step);
  if (is_remote(folder)) {
    std::string url = folder + "/" + checkpoint_name(manifest.step, next);
    put_checkpoint(url, unfinished, manifest);
    drop_checkpoint(files, unfinished);
    return url;
  }
  write_new_file(files, unfinished + "/" + std::string(kManifestName), encode_manifest(manifest));
  files.sync_folder(unfinished);
  for (int save = next; save < next + kRenamesMax; ++save) {
    std::string path = folder + "/" + checkpoint_name(manifest.step, save);
    if (!files.rename(unfinished, path)) continue;
    files.sync_folder(folder);
    return path;
  }
  fail(Errc::io,
       "{}: no free name for the checkpoint, because other processes keep saving "
       "checkpoints of step {} in this folder",
       folder, manifest.step);
}

bool remove_checkpoint(FileSystem& files, const std::string& path) {
  if (is_remote(path)) {
    remove_checkpoint_objects(path);
    return true;
  }
  const LockedFile lock(
      ::open(manifest_path(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), LOCK_EX);
  if (lock.is_refused()) return false;
  const std::string parent = parent_of(path);
  const std::string trash = parent + "/" + std::string(kTrash) + fs::path(path).filename().string();
  if (!files.rename(path, trash)) {
    fail(Errc::io, "can't rename {} to {}, which exists already", path, trash);
  }
  // Without this sync, a power failure could leave the checkpoint's name but not its files.
  files.sync_folder(parent);
  remove_files(files, trash);
  return true;
}

}  // namespace weft
