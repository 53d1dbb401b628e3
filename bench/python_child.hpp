#pragma once
/// PythonChild: a peer of weft in Python that answers requests.

#include <sys/types.h>

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace weft::bench {

/// A script that answers each line of its input by a line of JSON, and ends when its input ends.
class PythonChild {
 public:
  /// Returns whether Debian's Python, for which Debian's packages are made, can import all of the
  /// modules, such as "torch, PIL".
  static bool has(const std::string& modules);

  /// `script` is its path in the sources. Throws io.
  PythonChild(const std::string& script, const std::vector<std::string>& arguments);
  PythonChild(const PythonChild&) = delete;
  PythonChild& operator=(const PythonChild&) = delete;
  ~PythonChild();

  /// Throws io if the script ends instead of answering; its error is on stderr.
  nlohmann::json ask(const std::string& line);

 private:
  const std::string script_;
  int socket_ = -1;
  pid_t pid_ = -1;
};

}  // namespace weft::bench
