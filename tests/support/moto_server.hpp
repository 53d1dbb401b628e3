#pragma once
/// Serves S3 on the loopback interface with moto from PyPI, an independent project that verifies
/// signatures.

#include <memory>
#include <string>

#include "tests/support/app_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::testing {

/// Runs a server with a bucket "bucket". While this object lives, environment variables name the
/// server.
class MotoServer {
 public:
  /// Installs moto in `folder` with pip unless it is there. If that fails, why_not() gives the
  /// reason.
  explicit MotoServer(const std::string& folder);
  MotoServer(const MotoServer&) = delete;
  MotoServer& operator=(const MotoServer&) = delete;

  const std::string& why_not() const { return why_not_; }  ///< "" if moto is installed
  bool is_there() const { return is_there_; }              ///< whether the server answers

 private:
  const TemporaryFolder cache_;
  std::unique_ptr<AppProcess> process_;
  std::string why_not_;
  bool is_there_ = false;
};

}  // namespace weft::testing
