#pragma once
/// OutputFile: a file for other programs, which gets its name once all of it is durable.

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

namespace weft {

/// All calls throw io or no_space with the path.
class OutputFile {
 public:
  /// Creates a file beside `path`, under another name.
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Removes what was not finished.
  ~OutputFile();

  void write(std::span<const std::byte> bytes);
  /// Gives the file its name; it replaces one that has it.
  void finish();

 private:
  [[noreturn]] void fail_call(const char* what) const;

  const std::string path_;
  std::string unfinished_;
  std::FILE* file_;
};

}  // namespace weft
