#include "transport/job/private_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <weft/tensor/error.hpp>

namespace weft {

void write_private_file(const std::string& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool is_whole =
      fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (is_whole) return;
  if (fd >= 0) ::unlink(path.c_str());
  fail(Errc::io, "can't write {}: {}", path, std::strerror(error));
}

void replace_private_file(const std::string& path, std::string_view text) {
  const std::string unfinished = fmt::format("{}.{}.new", path, random_hex(8));
  write_private_file(unfinished, text);
  if (::rename(unfinished.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  ::unlink(unfinished.c_str());
  fail(Errc::io, "can't write {}: {}", path, std::strerror(error));
}

std::optional<std::string> find_own_file(const std::string& path, mode_t forbidden,
                                         std::size_t bytes_max) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0 && errno == ENOENT) return {};
  if (fd < 0) fail(Errc::io, "can't read {}: {}", path, std::strerror(errno));
  struct stat info {};
  const bool is_known = ::fstat(fd, &info) == 0;
  std::string text(bytes_max + 1, '\0');
  std::size_t size = 0;
  ssize_t count = 1;
  while (count > 0 && size < text.size()) {
    count = ::read(fd, text.data() + size, text.size() - size);
    if (count > 0) size += static_cast<std::size_t>(count);
  }
  ::close(fd);
  if (!is_known || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid() ||
      (info.st_mode & forbidden) != 0) {
    fail(Errc::io,
         "{} belongs to user {} and has mode {:o}: expected a plain file of user {} without the "
         "permissions {:o}",
         path, info.st_uid, info.st_mode & 07777, ::geteuid(), forbidden);
  }
  if (count < 0 || size > bytes_max) {
    fail(Errc::io, "{} can't be read, or has more than {} bytes", path, bytes_max);
  }
  text.resize(size);
  return text;
}

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0');
  if (::getrandom(raw.data(), bytes, 0) != static_cast<ssize_t>(bytes)) {
    fail(Errc::io, "getrandom: {}", std::strerror(errno));
  }
  std::string text;
  for (const char byte : raw) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace weft
