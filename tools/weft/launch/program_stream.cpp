#include "tools/weft/launch/program_stream.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {

bool is_same_file(int a, int b) {
  struct stat first {};
  struct stat second {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

ProgramStream::ProgramStream(std::vector<int> streams) : streams_(std::move(streams)) {
  if (::isatty(streams_.front()) != 0) {
    open_terminal();
  } else {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(Errc::io, "pipe: {}", std::strerror(errno));
    reader_ = ends[0];
    writer_ = ends[1];
  }
  ::fcntl(reader_, F_SETFL, O_NONBLOCK);
}

ProgramStream::~ProgramStream() {
  let_go();
  if (reader_ >= 0) ::close(reader_);
}

/// Opens a pseudo terminal. It passes newlines through, because the real terminal behind it
/// converts them.
void ProgramStream::open_terminal() {
  termios settings{};
  winsize size{};
  ::tcgetattr(streams_.front(), &settings);
  ::ioctl(streams_.front(), TIOCGWINSZ, &size);
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  if (::openpty(&reader_, &writer_, nullptr, &settings, &size) != 0) {
    fail(Errc::io, "openpty: {}; --no-progress leaves the program on this terminal",
         std::strerror(errno));
  }
  for (const int fd : {reader_, writer_}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void ProgramStream::add_to(Replacements& replacements) const {
  for (const int stream : streams_) replacements.emplace_back(writer_, stream);
}

void ProgramStream::let_go() {
  if (writer_ >= 0) ::close(std::exchange(writer_, -1));
}

bool ProgramStream::read(std::string& text) {
  if (reader_ < 0) return false;
  std::array<char, 65536> block;
  const ssize_t count = ::read(reader_, block.data(), block.size());
  if (count > 0) {
    text.append(block.data(), static_cast<std::size_t>(count));
    return true;
  }
  if (count < 0 && errno == EINTR) return true;
  // A pseudo terminal whose other end is closed returns EIO.
  if (count == 0 || errno != EAGAIN) ::close(std::exchange(reader_, -1));
  return false;
}

void ProgramStream::take_size() const {
  winsize size{};
  if (reader_ < 0 || ::ioctl(streams_.front(), TIOCGWINSZ, &size) != 0) return;
  ::ioctl(reader_, TIOCSWINSZ, &size);
}

}  // namespace weft
