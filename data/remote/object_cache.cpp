#include "data/remote/object_cache.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <xxhash.h>
#include <weft/tensor/error.hpp>

#include "data/files/envelope.hpp"
#include "data/files/plain_file.hpp"
#include "data/files/work_crew.hpp"
#include "data/remote/storages.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr int kCopiesAtATime = 4;
constexpr std::uint64_t kRangeBytes = std::uint64_t{16} << 20;
constexpr std::size_t kNoteBytesMax = 8192;

[[noreturn]] void fail_call(const char* call, const std::string& path, int error) {
  const bool is_full = error == ENOSPC || error == EDQUOT;
  fail(is_full ? Errc::no_space : Errc::io,
       "{}: {} failed: {}; this folder has copies of objects; set WEFT_CACHE to use another folder",
       path, call, std::strerror(error));
}

std::string cache_folder() {
  if (std::string chosen = path_variable("WEFT_CACHE"); !chosen.empty()) return chosen;
  if (const std::string all = path_variable("XDG_CACHE_HOME"); !all.empty()) return all + "/weft";
  if (const std::string home = path_variable("HOME"); !home.empty()) return home + "/.cache/weft";
  fail(Errc::unavailable,
       "HOME isn't set: set WEFT_CACHE to a folder of this machine for copies of objects");
}

std::string hash_of(const std::string& url) {
  return fmt::format("{:016x}", xxh3(std::as_bytes(std::span(url))));
}

/// Returns the local folder for copies of a remote folder's objects.
std::string copies_of(const std::string& folder_url) {
  return cache_folder() + "/copies/" + hash_of(folder_url);
}

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail_call("mkdir", path, error.value());
}

/// An open file, which lock() locks against other processes.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags) : path_(path) {
    descriptor_ = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
    if (descriptor_ < 0) fail_call("open", path, errno);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(descriptor_); }

  int descriptor() const { return descriptor_; }
  /// Locks the file, after waiting for other processes to release it. Does nothing on file systems
  /// without locks.
  void lock() const {
    while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) continue;
  }
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t count = ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                                     static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail_call("write", path_, count < 0 ? errno : EIO);
      done += static_cast<std::size_t>(count);
    }
  }
  void sync() const {
    if (::fsync(descriptor_) != 0) fail_call("fsync", path_, errno);
  }
  /// Returns the short text that set_note() has stored in the file.
  std::string note() const {
    std::array<char, kNoteBytesMax> text{};
    const ssize_t count = ::pread(descriptor_, text.data(), text.size(), 0);
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }
  void set_note(const std::string& text) const {
    if (::ftruncate(descriptor_, 0) != 0) fail_call("write", path_, errno);
    write(0, std::as_bytes(std::span(text)));
  }

 private:
  const std::string path_;
  int descriptor_;
};

void require_file_name(const std::string& name, const std::string& url) {
  constexpr std::size_t kNameBytesMax = 250;
  if (!name.empty() && name != "." && name != ".." && name.size() <= kNameBytesMax) return;
  fail(Errc::invalid_argument,
       "{}: expected the URL of an object whose last part is a valid file name of up to {} bytes",
       url, kNameBytesMax);
}

bool has_bytes(const std::string& path, std::uint64_t bytes) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<std::uint64_t>(status.st_size) == bytes;
}

void copy_object(Storage& storage, const StoredObject& object, const std::string& to) {
  const OpenFile file(to, O_WRONLY | O_CREAT | O_TRUNC);
  const std::uint64_t ranges = (object.bytes + kRangeBytes - 1) / kRangeBytes;
  WorkCrew(kCopiesAtATime).each(static_cast<std::size_t>(ranges), [&](std::size_t i) {
    const std::uint64_t at = i * kRangeBytes;
    std::vector<std::byte> range(
        static_cast<std::size_t>(std::min(kRangeBytes, object.bytes - at)));
    storage.read(object, at, range);
    file.write(at, range);
  });
  file.sync();
}

}  // namespace

std::string local_copy(const StoredObject& object) {
  const std::string name = last_part(object.url);
  require_file_name(name, object.url);
  const std::string folder = copies_of(parent_url(object.url));
  for (const char* part : {"/files", "/versions", "/new"}) make_folder(folder + part);
  const std::string copy = folder + "/files/" + name;
  const OpenFile version(folder + "/versions/" + name, O_RDWR | O_CREAT);
  version.lock();
  const std::string wanted = fmt::format("{} {} {}", object.bytes, object.version, object.url);
  if (version.note() == wanted && has_bytes(copy, object.bytes)) return copy;
  const std::string unfinished = folder + "/new/" + name;
  copy_object(*find_storage(object.url), object, unfinished);
  // The version is cleared first: if the process is killed before it is set again, the copy has no
  // version and is made again.
  version.set_note("");
  if (::rename(unfinished.c_str(), copy.c_str()) != 0) fail_call("rename", unfinished, errno);
  version.set_note(wanted);
  return copy;
}

std::string local_copy(const std::string& path) {
  const StoragePtr storage = find_storage(path);
  if (storage == nullptr) return path;
  const auto object = storage->open(path);
  if (!object) fail(Errc::not_found, "{} doesn't exist", path);
  return local_copy(*object);
}

std::vector<std::string> local_copies(const std::vector<std::string>& paths) {
  std::vector<std::string> copies(paths);
  WorkCrew(kCopiesAtATime).each(paths.size(), [&](std::size_t i) {
    if (is_remote(paths[i])) copies[i] = local_copy(paths[i]);
  });
  return copies;
}

std::string local_folder(const std::string& folder, const std::vector<std::string>& names) {
  if (!is_remote(folder)) return folder;
  std::vector<std::string> urls;
  for (const std::string& name : names) urls.push_back(folder + "/" + name);
  (void)local_copies(urls);
  return copies_of(folder) + "/files";
}

void keep_one_copy(const std::string& parent, const std::string& folder,
                   const std::string& locked) {
  make_folder(copies_of(parent));
  const OpenFile kept(copies_of(parent) + "/kept", O_RDWR | O_CREAT);
  kept.lock();
  const std::string before = kept.note();
  if (before == folder) return;
  std::error_code ignored;
  if (!before.empty() && fs::exists(copies_of(before) + "/files/" + locked, ignored)) {
    const OpenFile held(copies_of(before) + "/files/" + locked, O_RDONLY);
    if (::flock(held.descriptor(), LOCK_EX | LOCK_NB) == 0) {
      fs::remove_all(copies_of(before), ignored);
    }
  }
  kept.set_note(folder);
}

std::string staging_folder(const std::string& folder_url) {
  require_storage(folder_url);
  std::string folder = cache_folder() + "/staged/" + hash_of(folder_url);
  make_folder(folder);
  return folder;
}

bool put_file(const std::string& url, int descriptor, PutMode mode) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_call("fstat", url, errno);
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    for (std::size_t done = 0; done < out.size();) {
      const ssize_t count = ::pread(descriptor, out.data() + done, out.size() - done,
                                    static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail_call("read", url, count < 0 ? errno : EIO);
      done += static_cast<std::size_t>(count);
    }
  };
  return find_storage(url)->put(url, static_cast<std::uint64_t>(status.st_size), read, mode);
}

}  // namespace weft
