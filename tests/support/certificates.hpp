#pragma once
/// Certificates that a test makes for its own use.

#include <memory>
#include <string>

#include <openssl/types.h>

#include <weft/job/tls.hpp>

namespace weft::testing {

struct IssueOptions {
  long from_days = -1;  ///< days from now
  long to_days = 1;
  std::string usage{};  ///< extendedKeyUsage; "": any
  bool encrypted = false;
  int rsa_bits = 0;  ///< bits of the key; 0: P-256
};

struct AuthorityOptions {
  std::string usage{};  ///< as in IssueOptions
  int rsa_bits = 0;     ///< bits of its key; 0: P-256
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
