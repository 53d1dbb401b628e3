#include "data/remote/s3_requests.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <random>
#include <thread>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"

namespace weft {
namespace {

constexpr std::size_t kKeyBytesMax = 1024;
constexpr std::size_t kBucketBytesMax = 255;
/// The maximum number of bytes of a server's text that a message quotes.
constexpr std::size_t kSaidBytesMax = 300;
constexpr int kWaitMsMax = 10'000;

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string said(std::string_view text) { return visible(text.substr(0, kSaidBytesMax)); }

/// Reads S3's code and message of an error from an answer, if there are any. A long request may
/// have the status 200 although it failed, because S3 sends the status early.
void read_error(const S3Request& request, S3Answer& answer) {
  const std::string& text = answer.http.text;
  if (!answer.http.fault.empty() || text.empty()) return;
  if (answer.http.is_ok() && request.method != "POST") return;
  try {
    const XmlElement root = parse_xml(text);
    if (root.name != "Error") return;
    answer.code = said(root.text_of("Code"));
    answer.message = said(root.text_of("Message"));
    if (answer.code.empty()) answer.code = "Error";
  } catch (const Error&) {
    // Only the answer's status is known, because another server, such as a proxy, sent this text.
  }
}

bool is_transient(const S3Answer& answer) {
  constexpr std::array kStatuses{408, 429, 500, 502, 503, 504};
  constexpr std::array<std::string_view, 5> kCodes{"ConditionalRequestConflict", "InternalError",
                                                   "OperationAborted", "RequestTimeout",
                                                   "SlowDown"};
  return !answer.http.fault.empty() ||
         std::ranges::find(kStatuses, answer.http.status) != kStatuses.end() ||
         std::ranges::find(kCodes, answer.code) != kCodes.end();
}

/// Returns whether a key has a part "." or "..", which libcurl would remove.
bool has_dots(std::string_view key) {
  const std::string whole = fmt::format("/{}/", key);
  return whole.find("/./") != std::string::npos || whole.find("/../") != std::string::npos;
}

/// Waits before attempt number `attempt`. The time is random, between half of a limit and the
/// limit, so that workers don't retry together. The limit doubles with each attempt.
void wait_before(int attempt, int first_wait_ms) {
  thread_local std::minstd_rand random(std::random_device{}());
  const int most = std::min(first_wait_ms << std::min(attempt - 2, 16), kWaitMsMax);
  const int ms = std::uniform_int_distribution<int>(most / 2, std::max(most, 0))(random);
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

}  // namespace

S3Name S3Name::parse(const std::string& url) {
  S3Name name{.url = url};
  const std::size_t begin = url.find("://") + 3;
  const std::size_t slash = std::min(url.find('/', begin), url.size());
  name.bucket = url.substr(begin, slash - begin);
  if (slash < url.size()) name.key = url.substr(slash + 1);
  const auto is_of_bucket = [](char c) { return is_unreserved(c) && c != '~'; };
  if (name.bucket.empty() || name.bucket.size() > kBucketBytesMax || name.bucket[0] == '.' ||
      !std::ranges::all_of(name.bucket, is_of_bucket)) {
    fail(Errc::invalid_argument,
         "\"{}\": '{}' is no bucket's name: expected \"s3://BUCKET/KEY\", the bucket of letters, "
         "digits, '-', '.' and '_'",
         visible(url), visible(name.bucket));
  }
  const auto is_control = [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; };
  if (name.key.size() > kKeyBytesMax || std::ranges::any_of(name.key, is_control) ||
      has_dots(name.key)) {
    fail(Errc::invalid_argument,
         "\"{}\": expected a key of at most {} bytes, without control characters and without \".\" "
         "and \"..\" between slashes",
         visible(url), kKeyBytesMax);
  }
  return name;
}

S3Requests::S3Requests(S3Settings settings)
    : settings_(std::move(settings)),
      http_({.region = settings_.region,
             .access_key = settings_.access_key,
             .secret_key = settings_.secret_key,
             .ca_bundle = settings_.ca_bundle,
             .stall_timeout_s = settings_.stall_timeout_s}) {}

void S3Requests::require_keys(const S3Name& name) const {
  if (!settings_.access_key.empty() && !settings_.secret_key.empty()) return;
  fail(Errc::unavailable,
       "{}: there are no keys for S3 in {}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and "
       "AWS_SESSION_TOKEN for keys that expire), or AWS_PROFILE to a profile of "
       "~/.aws/credentials",
       name.url, settings_.origin);
}

/// Returns the URL of a request. With a custom server, the bucket is in the path. With Amazon's
/// server, the bucket is in the host's name, unless the certificate doesn't cover that name.
std::string S3Requests::url_of(const S3Request& request) const {
  const S3Name& name = request.name;
  const bool is_amazon = settings_.endpoint.empty();
  const std::string domain =
      settings_.region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  const bool is_in_host = is_amazon && name.bucket.find_first_of("._") == std::string::npos;
  std::string url = is_amazon ? fmt::format("https://{}{}s3.{}.{}", is_in_host ? name.bucket : "",
                                            is_in_host ? "." : "", settings_.region, domain)
                              : settings_.endpoint;
  if (!is_in_host) url += "/" + name.bucket;
  if (!request.is_of_bucket || is_in_host) url += "/";
  if (!request.is_of_bucket) url += percent_encoded(name.key, true);
  char mark = '?';
  for (const auto& [key, value] : request.query) {
    url += fmt::format("{}{}={}", std::exchange(mark, '&'), percent_encoded(key),
                       percent_encoded(value));
  }
  return url;
}

S3Answer S3Requests::send(const S3Request& request) {
  require_keys(request.name);
  HttpRequest http{.method = request.method,
                   .url = url_of(request),
                   .headers = request.headers,
                   .body = request.body,
                   .into = request.into,
                   .text_bytes_max = request.text_bytes_max};
  // The body isn't hashed, which would take another pass, because S3 already checks its CRC.
  http.headers.emplace_back("x-amz-content-sha256: UNSIGNED-PAYLOAD");
  if (!settings_.session_token.empty()) {
    http.headers.push_back("x-amz-security-token: " + settings_.session_token);
  }
  for (int attempt = 1;; ++attempt) {
    S3Answer answer{.http = http_.send(http), .attempts = attempt};
    read_error(request, answer);
    if (!is_transient(answer) || attempt >= settings_.attempts) return answer;
    wait_before(attempt + 1, settings_.first_wait_ms);
  }
}

std::string S3Requests::advice_for(const S3Answer& answer) const {
  const std::string region = said(answer.http.header("x-amz-bucket-region"));
  const std::string where =
      settings_.endpoint.empty() ? "region " + settings_.region : settings_.endpoint;
  const int status = answer.http.status;
  const bool is_elsewhere = status == 301 || status == 302 || status == 307 || status == 308 ||
                            answer.code == "AuthorizationHeaderMalformed";
  if (!answer.http.fault.empty() || status >= 500) {
    return fmt::format(
        "; the request was tried {} times at {}: check AWS_ENDPOINT_URL and the network, or raise "
        "AWS_MAX_ATTEMPTS",
        answer.attempts, where);
  }
  if (is_elsewhere) {
    return fmt::format(
        "; set AWS_REGION to the bucket's region{} (it is {} now), and AWS_ENDPOINT_URL to the "
        "bucket's server",
        region.empty() ? "" : " " + region, settings_.region);
  }
  if (answer.code == "RequestTimeTooSkewed") return "; set this machine's clock";
  if (status == 401 || status == 403) {
    return fmt::format(
        "; the keys come from {}: check the keys{}, and their permissions for the bucket",
        settings_.origin, settings_.session_token.empty() ? "" : " and AWS_SESSION_TOKEN");
  }
  if (answer.code == "NoSuchBucket") {
    return fmt::format(
        "; {} has no such bucket: create the bucket, or check AWS_ENDPOINT_URL and AWS_REGION",
        where);
  }
  return "";
}

void S3Requests::require_ok(const S3Request& request, const S3Answer& answer) const {
  if (answer.is_ok()) return;
  const S3Name& name = request.name;
  const bool is_absent = answer.http.status == 404;
  std::string what = answer.http.fault.empty() ? fmt::format("HTTP {}", answer.http.status)
                                               : said(answer.http.fault);
  if (!answer.code.empty()) what += " " + answer.code;
  if (!answer.message.empty()) what += fmt::format(" ({})", answer.message);
  fail(is_absent ? Errc::not_found : Errc::io, "{}: {} of bucket '{}', key '{}', failed: {}{}",
       name.url, request.method, name.bucket, visible(name.key), what, advice_for(answer));
}

S3Answer S3Requests::send_well(const S3Request& request) {
  S3Answer answer = send(request);
  require_ok(request, answer);
  return answer;
}

XmlElement parse_answer(const S3Request& request, const S3Answer& answer, std::string_view name) {
  try {
    XmlElement root = parse_xml(answer.http.text);
    if (root.name == name) return root;
    fail(Errc::corrupt, "found the element '{}'; expected '{}'", said(root.name), name);
  } catch (const Error& e) {
    fail(Errc::corrupt, "{}: the answer to {} isn't an answer of S3: {}; check AWS_ENDPOINT_URL",
         request.name.url, request.method, e.what());
  }
}

std::string percent_encoded(std::string_view text, bool keeps_slashes) {
  std::string encoded;
  for (const char c : text) {
    if (is_unreserved(c) || (c == '/' && keeps_slashes)) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    unsigned char byte = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || parsed.ec != std::errc() ||
        parsed.ptr != digits.data() + digits.size()) {
      return std::nullopt;
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

}  // namespace weft
