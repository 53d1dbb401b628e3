#include "inspect/process/segment_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <weft/tensor/error.hpp>

namespace weft {

std::optional<SegmentFile> SegmentFile::open(const std::string& name) {
  const std::string path = "/dev/shm/" + name;
  // O_NONBLOCK: without it, open() would wait if the file is a FIFO.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT) return {};
    fail(Errc::io, "segment {}: {}", path, std::strerror(errno));
  }
  SegmentFile file(descriptor, name);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    fail(Errc::io, "segment {}: {}", path, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    fail(Errc::corrupt, "segment {} isn't a plain file of this user with mode 0600", path);
  }
  return file;
}

SegmentFile::~SegmentFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool SegmentFile::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t count = ::pread(descriptor_, at, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    offset += static_cast<std::uint64_t>(count);
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace weft
