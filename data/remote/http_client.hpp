#pragma once
/// HttpClient: HTTP requests by libcurl, which is loaded at the first of them: programs that need
/// no object store don't load it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// How requests are signed (AWS Signature Version 4), and how long they may take.
struct HttpOptions {
  std::string region{};
  std::string access_key{};
  std::string secret_key{};
  std::string ca_bundle{};  ///< a file of certificates; "": the system's
  int connect_timeout_s = 10;
  int stall_timeout_s = 30;  ///< without a byte in either direction
};

struct HttpRequest {
  std::string method{};
  /// As it is sent: encoded, without "." and ".." in its path, the query sorted by names, each with
  /// a '='.
  std::string url{};
  std::vector<std::string> headers{};  ///< "name: value"; all are signed
  std::span<const std::byte> body{};
  /// Takes the body of an answer with a status of 200 to 299, unless it is empty.
  std::span<std::byte> into{};
  std::size_t text_bytes_max = std::size_t{1} << 20;  ///< of other bodies
};

struct HttpAnswer {
  std::string fault{};  ///< why there is no whole answer; "" if there is
  int status = 0;
  std::map<std::string, std::string> headers{};  ///< names in lower case
  std::string text{};
  std::size_t into_bytes = 0;

  bool is_ok() const { return fault.empty() && status >= 200 && status < 300; }
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

/// Used by any thread. Redirections are answers like others.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  /// Throws unavailable if there is no libcurl.
  HttpAnswer send(const HttpRequest& request);

 private:
  class Connections;

  const HttpOptions options_;
  const std::unique_ptr<Connections> connections_;
};

}  // namespace weft
