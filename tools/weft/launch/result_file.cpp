#include "tools/weft/launch/result_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

}  // namespace

ResultFile::ResultFile() : fd_(::memfd_create("weft-launch-result", MFD_CLOEXEC)) {
  if (fd_ < 0) fail(Errc::io, "memfd_create: {}", std::strerror(errno));
}

ResultFile::~ResultFile() { ::close(fd_); }

std::string ResultFile::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_); }

ReportedEnd ResultFile::read() const {
  std::array<char, 8192> text{};
  const ssize_t size = ::pread(fd_, text.data(), text.size(), 0);
  return parse_reported_end({text.data(), size > 0 ? static_cast<std::size_t>(size) : 0});
}

ReportedEnd parse_reported_end(std::string_view text) {
  ReportedEnd end;
  const std::string_view code = take_line(text);
  std::from_chars(code.data(), code.data() + code.size(), end.code);
  if (end.code < 0 || end.code > 255) end.code = 1;
  end.folder = take_line(text);
  end.message = take_line(text);
  return end;
}

}  // namespace weft
