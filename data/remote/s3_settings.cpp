#include "data/remote/s3_settings.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <string_view>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"

namespace weft {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;
constexpr int kAttemptsMax = 100;

using Section = std::map<std::string, std::string>;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string first_of(std::string a, std::string b) { return a.empty() ? b : a; }

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

/// Reads the keys of the section "[name]". Indented lines belong to the key above them.
Section read_section(const std::string& text, const std::string& name) {
  Section section;
  bool is_in = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view whole = std::string_view(text).substr(begin, end - begin);
    const std::string_view line = trim(whole);
    begin = end + 1;
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      is_in = trim(line.substr(1, line.size() - 2)) == name;
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!is_in || equals == std::string_view::npos || whole.front() == ' ') continue;
    section[std::string(trim(line.substr(0, equals)))] = trim(line.substr(equals + 1));
  }
  return section;
}

/// A configuration file of the AWS tools. It may be missing.
struct AwsFile {
  std::string path{};
  Section section{};
};
AwsFile read_aws_file(const char* name, const char* in_home, const std::string& section) {
  const std::string home = variable("HOME");
  AwsFile file{.path = variable(name)};
  if (file.path.empty() && !home.empty()) file.path = home + in_home;
  if (file.path.empty()) return file;
  file.section = read_section(find_file_text(file.path, kFileBytesMax).value_or(""), section);
  return file;
}

void require_plain(const std::string& value, const char* name) {
  const auto is_bad = [](char c) { return c <= ' ' || c == '\x7f'; };
  if (!std::ranges::any_of(value, is_bad)) return;
  fail(Errc::invalid_argument, "{} has a space or a control character: expected none", name);
}

void check_endpoint(std::string& endpoint) {
  if (endpoint.empty()) return;
  require_plain(endpoint, "AWS_ENDPOINT_URL");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const std::size_t host = endpoint.find("://");
  const bool is_url = endpoint.starts_with("http://") || endpoint.starts_with("https://");
  if (is_url && endpoint.find_first_of("?#@", host + 3) == std::string::npos) return;
  fail(Errc::invalid_argument,
       "AWS_ENDPOINT_URL = \"{}\": expected \"http://HOST:PORT\" or \"https://HOST\"", endpoint);
}

}  // namespace

S3Settings s3_settings() {
  S3Settings settings;
  const std::string profile = first_of(variable("AWS_PROFILE"), "default");
  const AwsFile config = read_aws_file("AWS_CONFIG_FILE", "/.aws/config",
                                       profile == "default" ? profile : "profile " + profile);
  const auto configured = [&](const char* key) {
    const auto found = config.section.find(key);
    return found == config.section.end() ? "" : found->second;
  };
  settings.access_key = variable("AWS_ACCESS_KEY_ID");
  settings.secret_key = variable("AWS_SECRET_ACCESS_KEY");
  settings.session_token = variable("AWS_SESSION_TOKEN");
  settings.origin = "the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
  if (settings.access_key.empty() || settings.secret_key.empty()) {
    AwsFile keys = read_aws_file("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials", profile);
    settings.access_key = keys.section["aws_access_key_id"];
    settings.secret_key = keys.section["aws_secret_access_key"];
    settings.session_token = keys.section["aws_session_token"];
    settings.origin = fmt::format("profile {} of {}", profile, keys.path);
  }
  require_plain(settings.access_key, "AWS_ACCESS_KEY_ID");
  require_plain(settings.secret_key, "AWS_SECRET_ACCESS_KEY");
  require_plain(settings.session_token, "AWS_SESSION_TOKEN");
  const std::string region = first_of(
      first_of(variable("AWS_REGION"), variable("AWS_DEFAULT_REGION")), configured("region"));
  settings.region = first_of(region, settings.region);
  const bool is_name = std::ranges::all_of(settings.region, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (!is_name) {
    fail(Errc::invalid_argument, "AWS_REGION = \"{}\": expected a region, such as \"eu-central-1\"",
         settings.region);
  }
  settings.endpoint =
      first_of(first_of(variable("AWS_ENDPOINT_URL_S3"), variable("AWS_ENDPOINT_URL")),
               configured("endpoint_url"));
  check_endpoint(settings.endpoint);
  settings.ca_bundle = first_of(variable("AWS_CA_BUNDLE"), configured("ca_bundle"));
  const std::string attempts = variable("AWS_MAX_ATTEMPTS");
  const char* const end = attempts.data() + attempts.size();
  const auto parsed = std::from_chars(attempts.data(), end, settings.attempts);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == end;
  if (!attempts.empty() &&
      (!is_number || settings.attempts < 1 || settings.attempts > kAttemptsMax)) {
    fail(Errc::invalid_argument, "AWS_MAX_ATTEMPTS = \"{}\": expected a number from 1 to {}",
         attempts, kAttemptsMax);
  }
  return settings;
}

}  // namespace weft
