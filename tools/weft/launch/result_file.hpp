#pragma once
/// ResultFile: tells the launcher how the job of a launched program ended.

#include <string>
#include <string_view>

namespace weft {

/// The first cause of a job's failure.
struct ReportedEnd {
  int code = 0;           ///< 0: no job of the program failed
  std::string folder{};   ///< the job's run folder
  std::string message{};  ///< one line
};

/// A file in memory into which the program writes the first cause of a failure. Its path exists
/// only as long as this process lives, so no file remains, however this process ends.
class ResultFile {
 public:
  ResultFile();
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  std::string path() const;
  ReportedEnd read() const;

 private:
  int fd_;
};

/// Parses the lines that a program has written: the code, the folder and the message. The lines
/// after the code may be missing.
ReportedEnd parse_reported_end(std::string_view text);

}  // namespace weft
