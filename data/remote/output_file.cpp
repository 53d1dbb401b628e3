#include "data/remote/output_file.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/files/file_system.hpp"
#include "data/remote/object_cache.hpp"
#include "data/remote/storages.hpp"

namespace weft {
namespace {

constexpr std::string_view kMark = ".weft-";
constexpr std::string_view kUnique = "XXXXXX";
constexpr std::string_view kSuffix = ".tmp";
/// The maximum number of names that are tried. An attempt fails if a sweep removes the new file
/// before its writer has locked it.
constexpr int kNamesTried = 100;

/// Returns the local folder in which the file at `path` is first written.
std::string writing_folder_of(const std::string& path) {
  if (find_storage(path) != nullptr) return staging_folder(parent_url(path));
  const auto folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// Returns whether OutputFile gives such a name to unfinished files.
bool is_unfinished_name(std::string_view name) {
  const std::size_t tail = kMark.size() + kUnique.size() + kSuffix.size();
  return name.size() > tail && name.ends_with(kSuffix) &&
         name.substr(name.size() - tail).starts_with(kMark);
}

/// The owner of a file's lock. `unknown`: the file system has no locks.
enum class FileLock { ours, others, unknown };

/// Tries to lock the file. Returns `others` also for a file that has lost its name, because it
/// can't be used.
FileLock lock_file(int descriptor) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? FileLock::others : FileLock::unknown;
  }
  struct stat status {};
  const bool has_name = ::fstat(descriptor, &status) == 0 && status.st_nlink > 0;
  return has_name ? FileLock::ours : FileLock::others;
}

/// Creates a file and completes its name. Returns null if no file can be created.
std::FILE* open_unfinished(std::string& name) {
  const std::string pattern = name;
  for (int attempt = 0;; ++attempt) {
    name = pattern;
    const int descriptor = ::mkostemps(name.data(), static_cast<int>(kSuffix.size()), O_CLOEXEC);
    if (descriptor < 0) return nullptr;
    if (lock_file(descriptor) != FileLock::others || attempt == kNamesTried) {
      ::fchmod(descriptor, 0644);
      return ::fdopen(descriptor, "wb");
    }
    ::close(descriptor);
  }
}

/// Returns whether the file's writer is dead. If so, removes the file unless `dry_run`.
bool sweep_file(const std::string& path, bool dry_run) {
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (descriptor < 0) return false;
  struct stat status {};
  const bool is_left = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                       status.st_uid == ::geteuid() && lock_file(descriptor) == FileLock::ours &&
                       (dry_run || ::unlink(path.c_str()) == 0);
  ::close(descriptor);
  return is_left;
}

}  // namespace

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)),
      folder_(writing_folder_of(path_)),
      unfinished_(fmt::format("{}/{}{}{}{}", folder_, last_part(path_), kMark, kUnique, kSuffix)),
      file_(nullptr) {
  file_ = open_unfinished(unfinished_);
  if (file_ == nullptr) fail_call("create");
  try {
    (void)sweep_unfinished(folder_);
  } catch (const Error&) {
    // If the folder can't be listed, the files of killed writers remain.
  }
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::remove(unfinished_.c_str());
  std::fclose(file_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail_call("write");
}

void OutputFile::finish() {
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) fail_call("write");
  if (is_remote(path_)) {
    (void)put_file(path_, descriptor(), PutMode::replace);
    std::remove(unfinished_.c_str());
    std::fclose(std::exchange(file_, nullptr));
    return;
  }
  if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) fail_call("name");
  std::fclose(std::exchange(file_, nullptr));
  posix_file_system().sync_folder(folder_);
}

void OutputFile::fail_call(const char* what) const {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT;
  fail(full ? Errc::no_space : Errc::io, "can't {} {}: {}{}", what, path_, std::strerror(error),
       full ? ": " + describe_room(path_, 0) : "");
}

std::vector<std::string> sweep_unfinished(const std::string& folder, bool dry_run) {
  std::vector<std::string> swept;
  for (const FolderEntry& entry : posix_file_system().list(folder)) {
    if (entry.is_folder || !is_unfinished_name(entry.name)) continue;
    const std::string path = folder + "/" + entry.name;
    if (sweep_file(path, dry_run)) swept.push_back(path);
  }
  return swept;
}

}  // namespace weft
