#include "data/remote/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "data/files/plain_file.hpp"
#include "data/remote/object_cache.hpp"
#include "data/remote/scan_progress.hpp"

namespace weft {
namespace {

/// Returns the path. Throws version for Parquet and Arrow files, which weft doesn't read, because
/// Debian has no library for them.
std::string checked_path(std::string path) {
  struct Columns {
    std::string_view extension;
    std::string_view name;
    std::string_view reader;
  };
  constexpr std::array<Columns, 3> kColumns{{{".parquet", "Parquet", "read_parquet"},
                                             {".feather", "Arrow's", "read_feather"},
                                             {".arrow", "Arrow's", "read_feather"}}};
  for (const auto& [extension, name, reader] : kColumns) {
    if (!path.ends_with(extension)) continue;
    fail(Errc::version,
         "{} is a file of {} format, which weft doesn't read; convert it to JSON lines, and read "
         "them by json_lines(): python3 -c \"import pandas; pandas.{}('{}').to_json('{}.jsonl', "
         "orient='records', lines=True)\"",
         path, name, reader, path, path);
  }
  return path;
}

}  // namespace

InputFile::InputFile(std::string path)
    : path_(checked_path(std::move(path))), descriptor_(open_plain_file(local_copy(path_))) {
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0) {
    bytes_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  const int error = errno;
  ::close(descriptor_);
  fail(Errc::io, "can't open {}: {}", path_, std::strerror(error));
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(Errc::io, "can't read {}: {}", path_, std::strerror(errno));
    if (count == 0) {
      fail(Errc::io, "{} ends at byte {}, but had {} bytes when it was opened", path_, offset,
           bytes_);
    }
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

std::vector<std::byte> InputFile::head(std::uint64_t count) const {
  std::vector<std::byte> head(static_cast<std::size_t>(std::min(count, bytes_)));
  read(0, head);
  return head;
}

void InputFile::scan(std::uint64_t begin,
                     const std::function<void(std::span<const std::byte>)>& take) const {
  constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
  std::vector<std::byte> piece;
  ScanProgress progress(path_, "bytes",
                        static_cast<std::int64_t>(bytes_ - std::min(begin, bytes_)));
  for (std::uint64_t at = begin; at < bytes_; at += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, bytes_ - at)));
    read(at, piece);
    take(piece);
    progress.advance(std::ssize(piece));
  }
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_NORMAL);
}

}  // namespace weft
