#pragma once
/// TLS for a job's control connections: its files, and whether they do.

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

/// Trainer and workers have one certificate, or several of the same CA: whoever has any certificate
/// of that CA is let in, so it has to be the job's, or the cluster's, own.
struct TlsConfig {
  std::string certificate{};  ///< PEM file: the certificate, and what is between it and `ca`
  std::string key{};          ///< PEM file without a passphrase, which nobody else may read
  std::string ca{};           ///< PEM file: who signs
  std::string listen = "127.0.0.1:0";  ///< the trainer's address; port 0: any that is free

  /// Some of it was asked for.
  bool wanted() const { return !certificate.empty() || !key.empty() || !ca.empty(); }
  friend bool operator==(const TlsConfig&, const TlsConfig&) = default;
};

struct TlsAddress {
  std::string host;
  std::uint16_t port = 0;
};

/// Of "host:port", or "[address]:port" of IPv6; `field` stands in the message. Throws
/// invalid_argument.
TlsAddress parse_tls_address(std::string_view text, std::string_view field);
/// What parse_tls_address() reads.
std::string to_string(const TlsAddress& address);

/// Throws invalid_argument, naming field, file and mend, unless all three files can be read, the
/// key is the certificate's and is private, the certificate is valid today, is signed by the CA,
/// may be a server's and a client's, and all of it is strong enough for this machine's OpenSSL.
void require_sound(const TlsConfig& tls);

}  // namespace weft
