#pragma once
/// The account, region and server for S3, read as the tools of AWS read them.

#include <cstddef>
#include <string>

namespace weft {

struct S3Settings {
  std::string endpoint{};  ///< "http://127.0.0.1:9000"; "": Amazon's of the region
  std::string region = "us-east-1";
  std::string access_key{};
  std::string secret_key{};
  std::string session_token{};
  std::string origin{};     ///< of the keys, for messages: "AWS_ACCESS_KEY_ID"
  std::string ca_bundle{};  ///< a file of certificates; "": the system's
  int attempts = 5;         ///< of each request
  int first_wait_ms = 100;  ///< before the second attempt; doubled before each further one
  int stall_timeout_s = 30;
  std::size_t part_bytes = std::size_t{16} << 20;  ///< objects are put and read by such parts
};

/// From AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else from the profile
/// AWS_PROFILE ("default") in AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials); AWS_REGION or
/// AWS_DEFAULT_REGION, else from AWS_CONFIG_FILE (~/.aws/config); AWS_ENDPOINT_URL_S3 or
/// AWS_ENDPOINT_URL, else from there; AWS_MAX_ATTEMPTS; AWS_CA_BUNDLE. Throws invalid_argument,
/// naming the variable, for a value that can't be; what read_file_text() throws.
S3Settings s3_settings();

}  // namespace weft
