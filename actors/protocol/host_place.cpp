#include "actors/protocol/host_place.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

#include <weft/tensor/error.hpp>

#include "transport/wires/wires.hpp"

namespace weft {
namespace {

constexpr int kHostsMax = 4096;

std::string text_of(const char* value) { return value == nullptr ? "" : value; }

}  // namespace

int parse_variable(const char* name, const std::string& text, int least, int most) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || parsed != end || value < least || value > most) {
    fail(Errc::invalid_argument, "{} = \"{}\": expected a number from {} to {}", name, text, least,
         most);
  }
  return value;
}

HostVariables read_host_variables(const VariableLookup& variable) {
  HostVariables read{.hosts = {},
                     .index = {},
                     .trainer = text_of(variable("WEFT_TRAINER")),
                     .secret_file = text_of(variable("WEFT_SECRET_FILE"))};
  const std::string hosts = text_of(variable("WEFT_HOSTS"));
  const std::string index = text_of(variable("WEFT_HOST_INDEX"));
  if (!hosts.empty()) read.hosts = parse_variable("WEFT_HOSTS", hosts, 1, kHostsMax);
  if (!index.empty()) {
    read.index =
        parse_variable("WEFT_HOST_INDEX", index, 0, read.hosts ? *read.hosts - 1 : kHostsMax - 1);
  }
  return read;
}

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

HostPlace worker_place(const VariableLookup& variable) {
  const HostVariables read = read_host_variables(variable);
  if (read.hosts.value_or(1) == 1) return {};
  if (!read.index || read.trainer.empty() || read.secret_file.empty()) {
    fail(Errc::invalid_argument,
         "WEFT_HOSTS = {} in a worker without WEFT_HOST_INDEX, WEFT_TRAINER or WEFT_SECRET_FILE: "
         "leave the variables as the process that started the worker has set them",
         *read.hosts);
  }
  return {.index = *read.index,
          .count = *read.hosts,
          .trainer = read.trainer,
          .secret = read_secret(read.secret_file),
          .address = text_of(variable("WEFT_HOST_ADDRESS")),
          .ports = parse_ports(text_of(variable("WEFT_HOST_PORTS")), "WEFT_HOST_PORTS"),
          .uses_ucx = text_of(variable("WEFT_HOST_WIRE")) == "ucx"};
}

std::vector<std::string> worker_place_variables(const HostPlace& place,
                                                const std::string& secret_file) {
  std::vector<std::string> variables{
      fmt::format("WEFT_HOSTS={}", place.count), fmt::format("WEFT_HOST_INDEX={}", place.index),
      "WEFT_TRAINER=" + place.trainer,           "WEFT_SECRET_FILE=" + secret_file,
      "WEFT_HOST_ADDRESS=" + place.address,      "WEFT_HOST_PORTS=" + to_string(place.ports)};
  if (!place.uses_ucx) return variables;
  variables.push_back("WEFT_HOST_WIRE=ucx");
  const std::vector<std::string> for_ucx = ucx_variables();
  variables.insert(variables.end(), for_ucx.begin(), for_ucx.end());
  return variables;
}

}  // namespace weft
