#include "inspect/history/log_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {

LogFile::LogFile(LogFile&& other) noexcept
    : path_(std::move(other.path_)),
      worker_(other.worker_),
      file_(std::exchange(other.file_, -1)),
      inode_(other.inode_),
      read_(other.read_),
      buffer_(std::move(other.buffer_)),
      skips_line_(other.skips_line_),
      has_grown_(other.has_grown_),
      last_(std::move(other.last_)),
      latest_ns_(other.latest_ns_) {}

LogFile::~LogFile() { close(); }

void LogFile::close() {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
}

/// Opens the file. Returns false if the path doesn't exist or isn't a file.
bool LogFile::open() {
  if (file_ >= 0) return true;
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0 && errno == ENOENT) return false;
  struct stat status {};
  if (file < 0 || ::fstat(file, &status) != 0) {
    const int reason = errno;
    if (file >= 0) ::close(file);
    fail(Errc::io, "can't read {}: {}", path_, std::strerror(reason));
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(file);
    return false;
  }
  file_ = file;
  inode_ = status.st_ino;
  read_ = 0;
  return true;
}

bool LogFile::read_more() {
  if (!open()) return false;
  std::array<char, 1 << 14> block;
  ssize_t count = 0;
  do {
    count = ::read(file_, block.data(), block.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) fail(Errc::io, "can't read {}: {}", path_, std::strerror(errno));
  if (count == 0) return false;
  buffer_.append(block.data(), static_cast<std::size_t>(count));
  read_ += count;
  has_grown_ = true;
  return true;
}

bool LogFile::has_grown() { return std::exchange(has_grown_, false); }

void LogFile::renew() {
  struct stat status {};
  if (file_ < 0 || ::stat(path_.c_str(), &status) != 0) return;
  if (status.st_ino == inode_ && status.st_size >= read_) return;
  close();
  buffer_.clear();
  skips_line_ = false;
}

/// Returns the next line, without its newline.
std::optional<std::string> LogFile::take_line() {
  for (;;) {
    const std::size_t end = buffer_.find('\n');
    if (end == std::string::npos && buffer_.size() < kLineBytesMax) {
      if (!read_more()) return {};
      continue;
    }
    const bool was_skipped = std::exchange(skips_line_, end == std::string::npos);
    std::string line = buffer_.substr(0, std::min(end, kLineBytesMax));
    buffer_.erase(0, end == std::string::npos ? buffer_.size() : end + 1);
    if (!was_skipped) return line;
  }
}

void LogFile::append(const std::string& line) {
  if (!last_) {
    last_ = LogEntry{.unix_ns = latest_ns_, .worker = worker_, .text = line};
    return;
  }
  std::string& text = last_->text;
  if (text.size() + line.size() < kTextBytesMax) {
    text += "\n" + line;
  } else if (!text.ends_with("\n(cut)")) {
    text += "\n(cut)";
  }
}

std::optional<LogEntry> LogFile::next() {
  while (const std::optional<std::string> line = take_line()) {
    std::optional<LogEntry> begun = parse_log_line(*line, worker_);
    if (!begun) {
      append(*line);
      continue;
    }
    latest_ns_ = begun->unix_ns;
    if (auto done = std::exchange(last_, std::move(begun))) return done;
  }
  return {};
}

void LogFile::end_line() {
  if (!buffer_.empty()) buffer_ += '\n';
}

std::optional<std::int64_t> LogFile::last_ns() const {
  if (!last_) return {};
  return last_->unix_ns;
}

std::optional<LogEntry> LogFile::take_last() { return std::exchange(last_, std::nullopt); }

}  // namespace weft
