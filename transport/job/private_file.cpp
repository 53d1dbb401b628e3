#include "transport/job/private_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
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
