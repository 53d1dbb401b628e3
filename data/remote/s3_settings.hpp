#pragma once
/// Reads the account, region and server for S3 like the AWS tools.

#include <cstddef>
#include <string>

namespace weft {

struct S3Settings {
  std::string endpoint{};  ///< such as "http://127.0.0.1:9000"; "": Amazon's server
  std::string region = "us-east-1";
  std::string access_key{};
  std::string secret_key{};
  std::string session_token{};
  std::string origin{};     ///< source of the keys, such as "AWS_ACCESS_KEY_ID"
  std::string ca_bundle{};  ///< a file of certificates; "" for the system's
  int attempts = 5;         ///< number of attempts per request
  int first_wait_ms = 100;  ///< wait before the second attempt; doubles with each attempt
  int stall_timeout_s = 30;
  std::size_t part_bytes = std::size_t{16} << 20;  ///< size of parts that are put and read
};

/// Reads the keys from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else from
/// the profile AWS_PROFILE ("default") in AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). Reads
/// the region from AWS_REGION or AWS_DEFAULT_REGION, and the server from AWS_ENDPOINT_URL_S3 or
/// AWS_ENDPOINT_URL, else both from AWS_CONFIG_FILE (~/.aws/config). Also reads AWS_MAX_ATTEMPTS
/// and AWS_CA_BUNDLE. Throws invalid_argument, with the variable's name, if a value is invalid.
/// Also throws like read_file_text().
S3Settings s3_settings();

}  // namespace weft
