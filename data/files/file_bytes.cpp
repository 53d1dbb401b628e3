#include "data/files/file_bytes.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "data/files/plain_file.hpp"

namespace weft {
namespace {

struct OpenFile {
  int descriptor;
  ~OpenFile() { ::close(descriptor); }
};

[[noreturn]] void fail_size(const std::string& path, std::size_t bytes_max) {
  fail(Errc::invalid_argument, "{} has more than {} bytes, the maximum that can be read", path,
       bytes_max);
}

}  // namespace

std::vector<std::byte> read_file_bytes(const std::string& path, std::size_t bytes_max) {
  const OpenFile file{open_plain_file(path)};
  struct stat status {};
  if (::fstat(file.descriptor, &status) != 0) {
    fail(Errc::io, "can't read {}: {}", path, std::strerror(errno));
  }
  const auto said_bytes = static_cast<std::size_t>(status.st_size);
  if (said_bytes > bytes_max) fail_size(path, bytes_max);
  std::vector<std::byte> bytes;
  // Reads the file up to its end, whatever size the system reports, because files of /proc report
  // no size, and other files may grow.
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

std::string read_file_text(const std::string& path, std::size_t bytes_max) {
  const std::vector<std::byte> bytes = read_file_bytes(path, bytes_max);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<std::string> find_file_text(const std::string& path, std::size_t bytes_max) {
  try {
    return read_file_text(path, bytes_max);
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
    return std::nullopt;
  }
}

std::string file_identity(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path file = std::filesystem::canonical(path, failed);
  const auto size = std::filesystem::file_size(file, failed);
  const auto written = std::filesystem::last_write_time(file, failed);
  return fmt::format("{} {} {}", file.string(), size, written.time_since_epoch().count());
}

}  // namespace weft
