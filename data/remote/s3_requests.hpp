#pragma once
/// S3Requests: sends single requests to S3, and repeats a request if this may help.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/remote/http_client.hpp"
#include "data/remote/s3_settings.hpp"
#include "data/remote/xml.hpp"

namespace weft {

/// The parts of the URL of an object or of a prefix.
struct S3Name {
  std::string url{};  ///< "s3://bucket/key", as given by the user
  std::string bucket{};
  std::string key{};

  /// Throws invalid_argument for a bucket or a key that S3 doesn't allow.
  static S3Name parse(const std::string& url);
};

struct S3Request {
  std::string method{};
  S3Name name{};
  bool is_of_bucket = false;                                 ///< for the bucket, not a key
  std::vector<std::pair<std::string, std::string>> query{};  ///< sorted by name
  std::vector<std::string> headers{};
  std::span<const std::byte> body{};
  std::span<std::byte> into{};
  std::size_t text_bytes_max = std::size_t{1} << 20;
};

/// An answer, and the number of attempts made.
struct S3Answer {
  HttpAnswer http{};
  int attempts = 1;
  std::string code{};  ///< S3's code of an error, such as "NoSuchKey"
  std::string message{};

  bool is_ok() const { return http.is_ok() && code.empty(); }
};

/// Sends requests with common settings. Any thread may use an object of this class.
class S3Requests {
 public:
  explicit S3Requests(S3Settings settings);

  const S3Settings& settings() const { return settings_; }
  /// Returns the answer to the last attempt, even if it is an error. Throws unavailable if there
  /// are no access keys.
  S3Answer send(const S3Request& request);
  /// Throws the error that `answer` describes, unless the request succeeded.
  void require_ok(const S3Request& request, const S3Answer& answer) const;
  /// Sends the request and returns the answer if it succeeded. Throws like require_ok().
  S3Answer send_well(const S3Request& request);

 private:
  void require_keys(const S3Name& name) const;
  std::string url_of(const S3Request& request) const;
  std::string advice_for(const S3Answer& answer) const;

  const S3Settings settings_;
  HttpClient http_;
};

/// Returns the root of an answer's XML. Throws corrupt if the XML is invalid or the root has
/// another name.
XmlElement parse_answer(const S3Request& request, const S3Answer& answer, std::string_view name);

/// Encodes all characters except letters, digits and "-._~" as %XX; slashes remain if
/// `keeps_slashes`.
std::string percent_encoded(std::string_view text, bool keeps_slashes = false);
/// Decodes a text that was encoded like percent_encoded() does; '+' is a space. Returns nothing if
/// the text can't be decoded.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace weft
