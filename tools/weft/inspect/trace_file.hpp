#pragma once
/// TraceFile: writes a trace to a file.

#include <cstdio>
#include <string>
#include <string_view>

#include <zlib.h>

#include "data/remote/output_file.hpp"

namespace weft {

/// The file of a trace. It is compressed if its name ends with ".gz". It replaces an existing file
/// only when everything is written. After an error, the existing file is unchanged.
class TraceFile {
 public:
  /// Opens a temporary file. This and the other functions throw io.
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
