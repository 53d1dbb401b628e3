#pragma once
/// TraceFile: where a trace is written to.

#include <cstdio>
#include <string>
#include <string_view>

#include <zlib.h>

#include "data/remote/output_file.hpp"

namespace weft {

/// Compressed where the name ends with ".gz". What was there is replaced when all is written; an
/// error leaves it as it was.
class TraceFile {
 public:
  /// Throws io, as the others do.
  explicit TraceFile(const std::string& path);
  ~TraceFile();

  void write(std::string_view text);
  void finish();

 private:
  void check(bool is_written) const;

  std::string path_;
  OutputFile output_;
  gzFile file_;
};

}  // namespace weft
