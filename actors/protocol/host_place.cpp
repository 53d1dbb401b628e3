#include "actors/protocol/host_place.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include <weft/job/tls.hpp>
#include <weft/tensor/error.hpp>

#include "transport/wires/wires.hpp"

namespace weft {
namespace {

constexpr int kHostsMax = 4096;

std::string text_of(const char* value) { return value == nullptr ? "" : value; }

int number(const char* name, const std::string& text, int least, int most) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || parsed != end || value < least || value > most) {
    fail(Errc::invalid_argument, "{} = \"{}\": expected a number from {} to {}", name, text, least,
         most);
  }
  return value;
}

/// Reads the secret, without the white space at its end.
std::string read_secret(const std::string& path) {
  constexpr const char* kName = "WEFT_SECRET_FILE";
  std::ifstream in(path, std::ios::binary);
  struct stat info {};
  if (!in || ::stat(path.c_str(), &info) != 0) {
    fail(Errc::io, "{} = \"{}\": {}", kName, path, std::strerror(errno));
  }
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    fail(Errc::invalid_argument,
         "{} = \"{}\" may be read by others than its owner (mode {:o}): chmod 600 it", kName, path,
         info.st_mode & 0777);
  }
  std::string secret(std::istreambuf_iterator<char>(in), {});
  secret.erase(secret.find_last_not_of(" \t\r\n") + 1);
  if (secret.size() < kWireSecretBytes) {
    fail(Errc::invalid_argument,
         "{} = \"{}\" has a secret of {} bytes: expected at least {}, such as the output of "
         "`openssl rand -hex 32`",
         kName, path, secret.size(), kWireSecretBytes);
  }
  return secret;
}

}  // namespace

HostPlace host_place(const std::function<const char*(const char* name)>& variable) {
  const std::string hosts = text_of(variable("WEFT_HOSTS"));
  const std::string index = text_of(variable("WEFT_HOST_INDEX"));
  if (hosts.empty() && !index.empty()) {
    fail(Errc::invalid_argument,
         "WEFT_HOST_INDEX = \"{}\" without WEFT_HOSTS: set WEFT_HOSTS to the number of hosts",
         index);
  }
  if (hosts.empty()) return {};
  HostPlace place{.count = number("WEFT_HOSTS", hosts, 1, kHostsMax)};
  if (place.count == 1) return {};
  if (index.empty()) {
    fail(Errc::invalid_argument,
         "WEFT_HOSTS = {} without WEFT_HOST_INDEX: set it to 0 on one host, which runs the "
         "trainer, and to 1 to {} on the others",
         hosts, place.count - 1);
  }
  place.index = number("WEFT_HOST_INDEX", index, 0, place.count - 1);
  place.trainer = text_of(variable("WEFT_TRAINER"));
  if (place.trainer.empty()) {
    fail(Errc::invalid_argument,
         "WEFT_HOSTS = {} without WEFT_TRAINER: set it on all hosts to the address and port at "
         "which host 0 listens, such as 10.0.0.1:4711",
         hosts);
  }
  parse_tls_address(place.trainer, "WEFT_TRAINER");
  const std::string file = text_of(variable("WEFT_SECRET_FILE"));
  if (file.empty()) {
    fail(Errc::invalid_argument,
         "WEFT_HOSTS = {} without WEFT_SECRET_FILE: set it on all hosts to a file with a secret "
         "that only this job's processes know",
         hosts);
  }
  place.secret = read_secret(file);
  return place;
}

}  // namespace weft
