#pragma once
/// Certificates that a test makes for itself.

#include <memory>
#include <string>

#include <openssl/types.h>

#include <weft/actors/tls.hpp>

namespace weft::testing {

struct IssueOptions {
  long from_days = -1;  ///< from now
  long to_days = 1;
  std::string usage{};  ///< extendedKeyUsage; "": any
  bool encrypted = false;
};

/// Signs certificates with a key of its own.
class Authority {
 public:
  explicit Authority(const std::string& name);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  /// Writes name.crt, name.key (mode 0600) and, of its own, the CA's ca.crt to the folder.
  TlsConfig issue(const std::string& folder, const std::string& name,
                  const IssueOptions& options = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::testing
