#pragma once
/// MotoServer: serves S3 on loopback with moto from PyPI, an independent project that verifies
/// signatures.

#include <memory>
#include <string>

#include "tests/support/app_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::testing {

/// Has a bucket "bucket". While the server lives, the environment names it.
class MotoServer {
 public:
  /// Installs moto in `folder` by pip unless it is there. If that fails, why_not() says why.
  explicit MotoServer(const std::string& folder);
  MotoServer(const MotoServer&) = delete;
  MotoServer& operator=(const MotoServer&) = delete;

  const std::string& why_not() const { return why_not_; }  ///< "" if it is installed
  bool is_there() const { return is_there_; }              ///< whether it answers

 private:
  const TemporaryFolder cache_;
  std::unique_ptr<AppProcess> process_;
  std::string why_not_;
  bool is_there_ = false;
};

}  // namespace weft::testing
