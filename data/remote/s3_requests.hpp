#pragma once
/// S3Requests: single requests to S3, tried again where that helps.

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

/// The parts of the URL of an object, or of a prefix of objects.
struct S3Name {
  std::string url{};  ///< "s3://bucket/key", as it was given
  std::string bucket{};
  std::string key{};

  /// Throws invalid_argument for a bucket or a key that S3 can't have.
  static S3Name parse(const std::string& url);
};

struct S3Request {
  std::string method{};
  S3Name name{};
  bool is_of_bucket = false;                                 ///< not of the object
  std::vector<std::pair<std::string, std::string>> query{};  ///< by ascending names
  std::vector<std::string> headers{};
  std::span<const std::byte> body{};
  std::span<std::byte> into{};
  std::size_t text_bytes_max = std::size_t{1} << 20;
};

/// An answer, and how many attempts it took.
struct S3Answer {
  HttpAnswer http{};
  int attempts = 1;
  std::string code{};  ///< S3's, of an error: "NoSuchKey"
  std::string message{};

  bool is_ok() const { return http.is_ok() && code.empty(); }
};

/// Used by any thread.
class S3Requests {
 public:
  explicit S3Requests(S3Settings settings);

  const S3Settings& settings() const { return settings_; }
  /// The answer to the last attempt, whatever it is. Throws unavailable without keys.
  S3Answer send(const S3Request& request);
  /// Throws what `answer` says, unless it is well.
  void require_ok(const S3Request& request, const S3Answer& answer) const;
  /// The answer of a request that is well. Throws as require_ok().
  S3Answer send_well(const S3Request& request);

 private:
  void require_keys(const S3Name& name) const;
  std::string url_of(const S3Request& request) const;
  std::string advice_for(const S3Answer& answer) const;

  const S3Settings settings_;
  HttpClient http_;
};

/// The root of an answer's XML, which has this name. Throws corrupt.
XmlElement parse_answer(const S3Request& request, const S3Answer& answer, std::string_view name);

/// Everything but letters, digits and "-._~" as %XX; slashes stay if `keeps_slashes`.
std::string percent_encoded(std::string_view text, bool keeps_slashes = false);
/// The reverse; '+' is a space. Absent for what can't be decoded.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace weft
