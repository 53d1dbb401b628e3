#pragma once
/// Makes certificates for tests.

#include <memory>
#include <string>

#include <openssl/types.h>

#include <weft/job/tls.hpp>

namespace weft::testing {

struct IssueOptions {
  long from_days = -1;  ///< days from now until the certificate becomes valid
  long to_days = 1;
  std::string usage{};  ///< extendedKeyUsage; "" allows any
  bool encrypted = false;
  int rsa_bits = 0;  ///< an RSA key's bits; 0: the key is P-256
};

struct AuthorityOptions {
  std::string usage{};  ///< as in IssueOptions
  int rsa_bits = 0;     ///< as in IssueOptions
};

/// A certificate authority with its own key, which signs certificates.
class Authority {
 public:
  explicit Authority(const std::string& name, const AuthorityOptions& options = {});
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  /// Writes name.crt, name.key (mode 0600) and the authority's own ca.crt to the folder.
  TlsConfig issue(const std::string& folder, const std::string& name,
                  const IssueOptions& options = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::testing
