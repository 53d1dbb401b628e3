#pragma once
/// TraceFile: where a trace is written to.

#include <cstdio>
#include <string>
#include <string_view>

#include <zlib.h>

namespace weft {

/// Compressed where the name ends with ".gz". What was there is replaced when all is written; an
/// error leaves it as it was.
class TraceFile {
 public:
  /// Throws io, as the others do.
  explicit TraceFile(const std::string& path);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  void write(std::string_view text);
  void finish();

 private:
  [[noreturn]] void fail_io() const;

  std::string path_;
  std::string unfinished_;
  gzFile file_ = nullptr;
};

}  // namespace weft
