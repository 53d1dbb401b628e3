#pragma once
/// Certificates that a test makes for itself.

#include <memory>
#include <string>

#include <openssl/types.h>

#include <weft/tls.hpp>

namespace weft::testing {

struct IssueOptions {
  long from_days = -1;  ///< from now
  long to_days = 1;
  std::string usage{};  ///< extendedKeyUsage; "": any
  bool encrypted = false;
  int rsa_bits = 0;  ///< of the key; 0: P-256
};

struct AuthorityOptions {
  std::string usage{};  ///< as IssueOptions's
  int rsa_bits = 0;     ///< of its key; 0: P-256
};

/// Signs certificates with a key of its own.
class Authority {
 public:
  explicit Authority(const std::string& name, const AuthorityOptions& options = {});
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
