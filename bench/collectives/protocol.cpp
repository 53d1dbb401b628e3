#include "bench/collectives/protocol.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

namespace weft::bench {
namespace {

constexpr std::array<std::string_view, 8> kOpNames = {"barrier",    "all_reduce", "reduce_scatter",
                                                      "all_gather", "all_to_all", "broadcast",
                                                      "channel",    "probe"};

std::string_view to_string(Metric metric) { return metric == Metric::loop ? "loop" : "cycle"; }

}  // namespace

std::string_view to_string(Op op) noexcept { return kOpNames[static_cast<std::size_t>(op)]; }

Op parse_op(std::string_view name) {
  for (std::size_t i = 0; i < kOpNames.size(); ++i) {
    if (kOpNames[i] == name) return static_cast<Op>(i);
  }
  fail(Errc::invalid_argument, "op '{}': expected one of {}", name, fmt::join(kOpNames, ", "));
}

bool has_parts(Op op) noexcept {
  return op == Op::reduce_scatter || op == Op::all_gather || op == Op::all_to_all;
}

void to_json(nlohmann::json& json, const Hello& hello) { json = {{"rank", hello.rank}}; }
void from_json(const nlohmann::json& json, Hello& hello) { json.at("rank").get_to(hello.rank); }

void to_json(nlohmann::json& json, const Request& request) {
  json = {{"op", to_string(request.op)},
          {"bytes", request.bytes},
          {"metric", to_string(request.metric)},
          {"repetitions", request.repetitions},
          {"parts", request.parts},
          {"round", request.round}};
}

void from_json(const nlohmann::json& json, Request& request) {
  request.op = parse_op(json.at("op").get<std::string>());
  json.at("bytes").get_to(request.bytes);
  request.metric = json.at("metric") == "loop" ? Metric::loop : Metric::cycle;
  json.at("repetitions").get_to(request.repetitions);
  json.at("parts").get_to(request.parts);
  json.at("round").get_to(request.round);
}

void to_json(nlohmann::json& json, const Reply& reply) {
  if (!reply.error.empty()) {
    json = {{"error", reply.error}};
    return;
  }
  json = {{"call_seconds", reply.call_seconds}, {"baseline_seconds", reply.baseline_seconds}};
  if (reply.verified) json["verified"] = *reply.verified;
}

void from_json(const nlohmann::json& json, Reply& reply) {
  reply.error = json.value("error", "");
  reply.call_seconds = json.value("call_seconds", 0.0);
  reply.baseline_seconds = json.value("baseline_seconds", 0.0);
  if (json.contains("verified")) reply.verified = json.at("verified").get<bool>();
}

Connection Connection::open(const std::string& path) {
  Connection connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path)) {
    fail(Errc::invalid_argument, "socket '{}': expected at most {} bytes", path,
         sizeof(address.sun_path) - 1);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  if (connect(connection.descriptor_, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    fail(Errc::io, "can't connect to the bench at {}: {}", path, std::strerror(errno));
  }
  return connection;
}

Connection::Connection(Connection&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), received_(std::move(other.received_)) {}

Connection::~Connection() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Connection::send(const nlohmann::json& message) {
  const std::string line = message.dump() + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t size = ::send(descriptor_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (size < 0) fail(Errc::io, "the other end of the bench is gone: {}", std::strerror(errno));
    sent += static_cast<std::size_t>(size);
  }
}

std::optional<nlohmann::json> Connection::receive() {
  std::size_t end;
  while ((end = received_.find('\n')) == std::string::npos) {
    char buffer[4096];
    const ssize_t size = recv(descriptor_, buffer, sizeof(buffer), 0);
    if (size == 0 || (size < 0 && errno == ECONNRESET)) return std::nullopt;
    if (size < 0) {
      const Errc code = errno == EINTR    ? Errc::cancelled
                        : errno == EAGAIN ? Errc::timeout
                                          : Errc::io;
      fail(code, "no message from the other end: {}", std::strerror(errno));
    }
    received_.append(buffer, static_cast<std::size_t>(size));
  }
  const nlohmann::json message = nlohmann::json::parse(received_.substr(0, end));
  received_.erase(0, end + 1);
  return message;
}

}  // namespace weft::bench
