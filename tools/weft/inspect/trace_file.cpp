#include "tools/weft/inspect/trace_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <weft/error.hpp>

namespace weft {

TraceFile::TraceFile(const std::string& path)
    : path_(path), unfinished_(fmt::format("{}.{}.tmp", path, ::getpid())) {
  // T: zlib writes what it is given, without compression or a header.
  file_ = ::gzopen(unfinished_.c_str(), path.ends_with(".gz") ? "wbe6" : "wbeT");
  if (file_ == nullptr) fail_io();
}

TraceFile::~TraceFile() {
  if (file_ == nullptr) return;
  ::gzclose(file_);
  ::unlink(unfinished_.c_str());
}

void TraceFile::write(std::string_view text) {
  if (text.empty()) return;
  if (::gzwrite(file_, text.data(), static_cast<unsigned>(text.size())) <= 0) fail_io();
}

void TraceFile::finish() {
  if (::gzclose(std::exchange(file_, nullptr)) != Z_OK ||
      std::rename(unfinished_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    ::unlink(unfinished_.c_str());
    errno = reason;
    fail_io();
  }
}

void TraceFile::fail_io() const {
  fail(Errc::io, "can't write {}: {}", path_, std::strerror(errno));
}

}  // namespace weft
