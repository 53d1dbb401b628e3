#include "transport/format/file_bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <weft/error.hpp>

namespace weft {
namespace {

struct OpenFile {
  int descriptor;
  ~OpenFile() { ::close(descriptor); }
};

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a fifo";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no plain file";
}

[[noreturn]] void fail_size(const std::string& path, std::size_t bytes_max) {
  fail(Errc::invalid_argument, "{} has more than {} bytes, which is the most that is read", path,
       bytes_max);
}

[[noreturn]] void fail_open(const std::string& path) {
  const bool absent = errno == ENOENT || errno == ENOTDIR;
  fail(absent ? Errc::not_found : Errc::io, "can't open {}: {}", path, std::strerror(errno));
}

}  // namespace

std::vector<std::byte> read_file_bytes(const std::string& path, std::size_t bytes_max) {
  // O_NONBLOCK: open() must not wait for the writer of a fifo.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) fail_open(path);
  const OpenFile file{descriptor};
  struct stat status {};
  if (::fstat(file.descriptor, &status) != 0) fail_open(path);
  if (!S_ISREG(status.st_mode)) {
    fail(Errc::invalid_argument, "{} is {}: expected a plain file", path, kind_of(status.st_mode));
  }
  const auto said_bytes = static_cast<std::size_t>(status.st_size);
  if (said_bytes > bytes_max) fail_size(path, bytes_max);
  std::vector<std::byte> bytes;
  // Files of /proc report no size, and others may grow: the bytes read count.
  std::size_t wanted = said_bytes + 1;
  for (std::size_t size = 0;;) {
    bytes.resize(wanted);
    const ssize_t count = ::read(file.descriptor, bytes.data() + size, wanted - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(Errc::io, "can't read {}: {}", path, std::strerror(errno));
    size += static_cast<std::size_t>(count);
    if (size > bytes_max) fail_size(path, bytes_max);
    if (count == 0) {
      bytes.resize(size);
      return bytes;
    }
    if (size == wanted) wanted = std::min(2 * wanted, bytes_max + 1);
  }
}

}  // namespace weft
