#include "data/files/file_system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

[[noreturn]] void fail_call(const char* call, const std::string& path, int error,
                            std::uint64_t needed = 0) {
  const bool full = error == ENOSPC || error == EDQUOT;
  if (!full) fail(Errc::io, "{}: {} failed: {}", path, call, std::strerror(error));
  fail(Errc::no_space, "{}: {} failed: {}: {}", path, call, std::strerror(error),
       describe_room(path, needed));
}

/// Returns the mount of a device as text, such as "/data (ext4)", or "" if it is unknown. Reads
/// mountinfo (see proc(5)), in which the last mount of the device hides earlier mounts.
std::string mount_of(dev_t device) {
  const std::string wanted = fmt::format("{}:{}", major(device), minor(device));
  std::ifstream lines("/proc/self/mountinfo");
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string id, parent, number, root, point, word, type;
    fields >> id >> parent >> number >> root >> point;
    while (fields >> word && word != "-") {
    }
    if (number == wanted && fields >> type) found = fmt::format("{} ({})", point, type);
  }
  return found;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

class PosixFile : public NewFile {
 public:
  PosixFile(std::string path, std::uint64_t bytes)
      : path_(std::move(path)),
        cached_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)),
        direct_(cached_.number() < 0 ? -1
                                     : ::open(path_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC)) {
    if (cached_.number() < 0) fail_call("open", path_, errno);
    // Some file systems can't reserve space. There, write() fails if the disk is full.
    if (bytes > 0 && ::fallocate(cached_.number(), 0, 0, static_cast<off_t>(bytes)) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) {
      const int error = errno;
      ::unlink(path_.c_str());  // otherwise the reserved bytes would occupy space
      fail_call("fallocate", path_, error, bytes);
    }
  }

  void write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    // Bytes that can't be written directly are written through the page cache: tmpfs and some other
    // file systems don't support O_DIRECT, and a block device may require more alignment than 4096.
    const std::size_t whole = bytes.size() / kStorageAlignment * kStorageAlignment;
    std::size_t done = 0;
    if (direct_.number() >= 0) done = write_by(direct_, offset, bytes.first(whole));
    write_by(cached_, offset + done, bytes.subspan(done));
  }

  void sync() override {
    if (::fsync(cached_.number()) != 0) fail_call("fsync", path_, errno);
  }

 private:
  /// Returns the number of bytes written. Only a descriptor that bypasses the cache may write fewer
  /// than all bytes.
  std::size_t write_by(const Descriptor& file, std::uint64_t offset,
                       std::span<const std::byte> bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t count = ::pwrite(file.number(), bytes.data() + done, bytes.size() - done,
                                     static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EINVAL && &file == &direct_) return done;
      if (count < 0) fail_call("write", path_, errno, bytes.size() - done);
      if (count == 0) fail_call("write", path_, EIO);
      done += static_cast<std::size_t>(count);
      // After a short write the remaining bytes aren't aligned, so they must be written through the
      // cache.
      if (&file == &direct_ && done % kStorageAlignment != 0) return done;
    }
    return done;
  }

  const std::string path_;
  const Descriptor cached_;
  const Descriptor direct_;  // -1 if the file system doesn't support direct writes
};

class PosixFileSystem : public FileSystem {
 public:
  std::unique_ptr<NewFile> create_file(const std::string& path, std::uint64_t bytes) override {
    return std::make_unique<PosixFile>(path, bytes);
  }
  void create_folder(const std::string& path) override {
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) fail_call("mkdir", path, errno);
  }
  bool rename(const std::string& from, const std::string& to) override {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
      return true;
    }
    if (errno == EEXIST || errno == ENOTEMPTY) return false;
    if (errno != EINVAL) fail_call("rename", from, errno);
    // Some file systems, such as NFS, lack RENAME_NOREPLACE. There, rename() is used, which
    // replaces a folder only if it is empty.
    if (::rename(from.c_str(), to.c_str()) == 0) return true;
    if (errno == EEXIST || errno == ENOTEMPTY) return false;
    fail_call("rename", from, errno);
  }
  void sync_folder(const std::string& path) override {
    const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.number() < 0) fail_call("open", path, errno);
    if (::fsync(folder.number()) != 0) fail_call("fsync", path, errno);
  }
  std::vector<FolderEntry> list(const std::string& path) const override {
    namespace fs = std::filesystem;
    std::vector<FolderEntry> entries;
    std::error_code error;
    for (auto at = fs::directory_iterator(path, error); !error && at != fs::directory_iterator();
         at.increment(error)) {
      std::error_code gone;
      entries.push_back({.name = at->path().filename().string(),
                         .is_folder = fs::is_directory(at->symlink_status(gone))});
    }
    if (error) fail(Errc::io, "can't list {}: {}", path, error.message());
    std::ranges::sort(entries, {}, &FolderEntry::name);
    return entries;
  }
  void remove_file(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) fail_call("unlink", path, errno);
  }
  void remove_folder(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0) fail_call("rmdir", path, errno);
  }
};

}  // namespace

std::string describe_room(const std::string& path, std::uint64_t needed) {
  std::filesystem::path folder(path);
  struct stat status {};
  while (::stat(folder.c_str(), &status) != 0 && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  struct statvfs room {};
  if (::stat(folder.c_str(), &status) != 0 || ::statvfs(folder.c_str(), &room) != 0) return {};
  const std::string mount = mount_of(status.st_dev);
  std::string text = fmt::format("the file system {} has {} of {} bytes free",
                                 mount.empty() ? folder.string() : mount,
                                 room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize);
  if (needed != 0) text += fmt::format(", {} are needed", needed);
  return text;
}

FileSystem& posix_file_system() {
  static PosixFileSystem files;
  return files;
}

void write_new_file(FileSystem& files, const std::string& path, std::span<const std::byte> bytes) {
  // The bytes are copied because a write must begin at an aligned address.
  std::vector<std::byte> room(bytes.size() + kStorageAlignment);
  void* aligned = room.data();
  std::size_t space = room.size();
  std::align(kStorageAlignment, bytes.size(), aligned, space);
  std::memcpy(aligned, bytes.data(), bytes.size());
  const auto file = files.create_file(path, bytes.size());
  file->write(0, {static_cast<const std::byte*>(aligned), bytes.size()});
  file->sync();
}

}  // namespace weft
