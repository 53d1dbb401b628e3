#pragma once
/// PythonChild: a peer of weft in Python that answers requests.

#include <sys/types.h>

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace weft::bench {

/// Runs a Python script that answers each line of its input with a line of JSON, and ends when its
/// input ends.
class PythonChild {
 public:
  /// Returns whether Debian's own Python can import all of `modules`, such as "torch, PIL".
  /// Debian's packages work only with this Python.
  static bool has(const std::string& modules);

  /// Starts the script that is at the path `script` in the sources. Throws io.
  PythonChild(const std::string& script, const std::vector<std::string>& arguments);
  PythonChild(const PythonChild&) = delete;
  PythonChild& operator=(const PythonChild&) = delete;
  ~PythonChild();

  /// Sends a line and returns the answer. Throws io if the script ends without an answer; its error
  /// is on stderr.
  nlohmann::json ask(const std::string& line);

 private:
  const std::string script_;
  int socket_ = -1;
  pid_t pid_ = -1;
};

}  // namespace weft::bench
