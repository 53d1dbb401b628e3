#include "actors/link/rendezvous.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <weft/job/tls.hpp>
#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "transport/blackbox/box_clock.hpp"
#include "transport/job/private_file.hpp"
#include "transport/memory/namespaces.hpp"
#include "transport/wires/wires.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::size_t kFileBytesMax = 64 << 10;
constexpr std::size_t kSecretBytes = 32;

/// Returns whether the folder has the file. Lists the folder, because for stat() a network file
/// system may answer from memory that the file doesn't exist.
bool has_entry(const std::string& folder, const std::string& name) {
  std::error_code error;
  const fs::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return false;
  if (error) fail(Errc::io, "can't list the folder {}: {}", folder, error.message());
  return std::ranges::any_of(
      entries, [&](const fs::directory_entry& entry) { return entry.path().filename() == name; });
}

/// Returns the text of the file; nothing if it was removed meanwhile.
std::optional<std::string> read_private(const std::string& path) {
  try {
    return find_own_file(path, S_IRWXG | S_IRWXO, kFileBytesMax);
  } catch (const Error& error) {
    fail(error.code(),
         "the rendezvous file {}; run all hosts of the job as one user, in a folder that keeps "
         "owners and modes",
         error.what());
  }
}

/// The content of a rendezvous file.
struct Invitation {
  std::vector<std::string> hosts;  ///< numeric addresses
  std::uint16_t port = 0;
  std::string secret;
  std::string loopback;  ///< loopback_id() of host 0
  std::string machine;
};

Invitation parse(const std::string& path, const std::string& text) {
  try {
    const Json json = Json::parse(text);
    Invitation read{.hosts = json.at("addresses"),
                    .port = json.at("port"),
                    .secret = json.at("secret"),
                    .loopback = json.at("loopback"),
                    .machine = json.at("machine")};
    if (read.secret.size() < kWireSecretBytes) fail(Errc::io, "its secret is too short");
    return read;
  } catch (const std::exception& error) {
    fail(Errc::io, "the rendezvous file {} was not written by this version of weft: {}; remove it",
         path, error.what());
  }
}

/// Returns a text that is equal for processes with the same loopback device. Containers of one
/// machine may have different ones.
std::string loopback_id() {
  return fmt::format("{}/{}", read_boot_id(), namespace_of_this_process("net"));
}

}  // namespace

void prepare_meeting(HostPlace& place, const std::string& network) {
  const std::vector<std::string> addresses = own_addresses(network, "backend.network");
  const bool is_v6 = !addresses.empty() && addresses.front().find(':') != std::string::npos;
  place.trainer = is_v6 ? "[::]:0" : "0.0.0.0:0";
  place.secret = random_hex(kSecretBytes);
}

Rendezvous::Rendezvous(const HostPlace& place, const std::string& network,
                       const std::string& trainer)
    : path_(place.meeting_folder + "/" + rendezvous_name(place)) {
  std::vector<std::string> addresses = own_addresses(network, "backend.network");
  // Agents on this machine can reach host 0 even if it has no network.
  if (network.empty()) addresses.emplace_back("127.0.0.1");
  const auto port = trainer.substr(trainer.rfind(':') + 1);
  text_ = Json{{"addresses", addresses},
               {"port", std::stoi(port)},
               {"secret", place.secret},
               {"loopback", loopback_id()},
               {"machine", machine_name()}}
              .dump();
  std::error_code ignored;
  fs::create_directories(place.meeting_folder, ignored);
  replace_private_file(path_, text_);
}

Rendezvous::~Rendezvous() {
  try {
    // If a later run of the same job has replaced the file, it is kept.
    if (find_file_text(path_, kFileBytesMax) == text_) ::unlink(path_.c_str());
  } catch (const Error&) {  // the folder is gone
  }
}

std::vector<HostPlace> read_rendezvous(const HostPlace& place) {
  const std::string& folder = place.meeting_folder;
  if (!has_entry(folder, rendezvous_name(place))) return {};
  const std::string path = folder + "/" + rendezvous_name(place);
  const std::optional<std::string> text = read_private(path);
  if (!text) return {};
  const Invitation read = parse(path, *text);
  const bool is_here = read.loopback == loopback_id();
  std::vector<HostPlace> places;
  for (const std::string& host : read.hosts) {
    if (is_loopback(host) && !is_here) continue;
    HostPlace found = place;
    found.trainer = to_string(TlsAddress{.host = host, .port = read.port});
    found.secret = read.secret;
    places.push_back(std::move(found));
  }
  if (places.empty()) {
    fail(Errc::invalid_argument,
         "host 0 ({}) has told only {}, by which no other machine reaches it, and host {} is "
         "another machine ({}): give host 0 a network, or name one in backend.network",
         read.machine, fmt::join(read.hosts, ", "), place.index, machine_name());
  }
  return places;
}

}  // namespace weft
