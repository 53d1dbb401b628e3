#pragma once
/// HttpClient: sends HTTP requests with libcurl. The first request loads libcurl, so that programs
/// without an object store don't need it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// Options for signing requests (AWS Signature Version 4), and time limits.
struct HttpOptions {
  std::string region{};
  std::string access_key{};
  std::string secret_key{};
  std::string ca_bundle{};  ///< a file of certificates; "" for the system's
  int connect_timeout_s = 10;
  int stall_timeout_s = 30;  ///< longest time in which no byte is sent or received
};

struct HttpRequest {
  std::string method{};
  /// The URL in the form in which it is sent: encoded, without "." and ".." in the path. Query
  /// parameters are sorted by name, and each has a '='.
  std::string url{};
  std::vector<std::string> headers{};  ///< such as "name: value"; all are signed
  std::span<const std::byte> body{};
  /// Memory for the body of an answer with a status of 200 to 299. If it is empty, the body is
  /// stored in HttpAnswer::text.
  std::span<std::byte> into{};
  std::size_t text_bytes_max = std::size_t{1} << 20;  ///< the largest size of HttpAnswer::text
};

struct HttpAnswer {
  std::string fault{};  ///< reason why the answer is incomplete; "" if it is complete
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

/// A client for HTTP requests, which any thread may use. It doesn't follow redirections, but
/// returns them as answers.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  /// Sends the request and waits for the answer. Throws unavailable if there is no libcurl.
  HttpAnswer send(const HttpRequest& request);

 private:
  class Connections;

  const HttpOptions options_;
  const std::unique_ptr<Connections> connections_;
};

}  // namespace weft
