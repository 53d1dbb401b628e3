#include "actors/relay/meeting.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include <weft/job/tls.hpp>
#include <weft/tensor/error.hpp>

#include "actors/launch/foreign_launch.hpp"
#include "actors/launch/start_place.hpp"
#include "actors/link/tls_sockets.hpp"
#include "actors/process/log.hpp"
#include "transport/memory/namespaces.hpp"
#include "transport/wires/secret_context.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kPurpose = "weft lanes 1";
/// The channel of the preambles, above the channels of all jobs.
constexpr std::uint32_t kLaneChannel = 16;
constexpr std::chrono::milliseconds kDialAgainAfter{100};
constexpr std::chrono::seconds kOneAddress{5};

WirePreamble preamble(const std::string& system, std::uint64_t generation, std::uint32_t from,
                      std::uint32_t to) {
  return {.job = system,
          .generation = generation,
          .channel = kLaneChannel,
          .from = {.host = from},
          .to = {.host = to}};
}

void log_line(const std::string& line) { logger("weft.trainer")->warn("{}", line); }

/// Reads the other side's preamble, whose first bytes have arrived when dial_tls() returns.
WirePreamble read_preamble(TlsSession& session, Clock::time_point deadline) {
  WirePreambleBytes bytes{};
  std::size_t done = 0;
  while (done < bytes.size()) {
    std::size_t count = 0;
    const std::span<char> rest(reinterpret_cast<char*>(bytes.data()) + done, bytes.size() - done);
    const TlsProgress progress = session.read(rest, count);
    if (progress == TlsProgress::done) {
      done += count;
      continue;
    }
    const bool waits = progress == TlsProgress::wants_read || progress == TlsProgress::wants_write;
    if (!waits || Clock::now() >= deadline) fail(Errc::io, "the greeting was broken off");
    pollfd ready{session.fd(), POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(kDialAgainAfter.count()));
  }
  return decode_preamble(bytes);
}

TlsSession dial(const std::string& address, const std::string& secret, const WirePreamble& first,
                std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  const WirePreambleBytes words = encode(first);
  TlsSession session =
      dial_tls(parse_tls_address(address, "address of an actor system's host"),
               secret_context(secret, kPurpose, TlsSide::client),
               {reinterpret_cast<const char*>(words.data()), words.size()}, timeout);
  WirePreamble expected = first;
  std::swap(expected.from, expected.to);
  require_same(read_preamble(session, deadline), expected);
  return session;
}

/// Returns the numeric address of this end of a connection.
std::string own_address(const TlsSession& session) {
  WireAddress own;
  own.size = sizeof own.bytes;
  ::getsockname(session.fd(), own.get(), &own.size);
  return parse_tls_address(to_string(own), "own address").host;
}

[[noreturn]] void late(const HostPlace& place, const ActorHosts& options, const std::string& system,
                       const std::string& why) {
  fail(Errc::timeout,
       "host {} ({}) hasn't reached host 0 of actor system \"{}\" within ActorHosts::timeout_s = "
       "{}: {}",
       place.index, machine_name(), system, options.timeout_s,
       why.empty() ? fmt::format("there is no file {} in {}; start host 0, and give all hosts a "
                                 "storage_path that they share, or WEFT_TRAINER and "
                                 "WEFT_SECRET_FILE",
                                 rendezvous_name(place), place.meeting_folder)
                   : why);
}

}  // namespace

HostPlace actors_place(const ActorHosts& options) {
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  const auto launch = foreign_launch(variable);
  HostPlace place = start_place(launch, variable);
  if (launch) {
    ScalingConfig unused;
    obey_foreign_launch(*launch, place, unused);
  }
  place.ports = parse_ports(options.ports, "ActorHosts::ports");
  if (place.meeting_folder.empty()) place.meeting_folder = options.storage_path;
  if (place.count > 1 && !options.network.empty()) {
    place.address = own_addresses(options.network, "ActorHosts::network").front();
  }
  give_hosts_to_actors(place.count > 1);
  return place;
}

ActorsMeeting open_meeting(HostPlace place, const ActorHosts& options, const std::string& system) {
  if (!place.meeting.empty()) prepare_meeting(place, options.network);
  const TlsListener listener =
      listen_tls(parse_tls_address(place.trainer, "WEFT_TRAINER"), place.ports, "WEFT_TRAINER");
  const std::string host = parse_tls_address(place.trainer, "WEFT_TRAINER").host;
  const std::string address = to_string(TlsAddress{.host = host, .port = listener.port});
  ActorsMeeting meeting;
  meeting.door = std::make_unique<WireDoor>(
      listener.fd, address, secret_context(place.secret, kPurpose, TlsSide::server), log_line);
  if (!place.meeting.empty()) {
    meeting.file = std::make_unique<Rendezvous>(place, options.network, "tls://" + address);
  }
  logger("weft.trainer")
      ->info("actor system {}: host 0 of {}, lanes at tls://{}", system, place.count, address);
  return meeting;
}

ReachedHost reach_host_0(const HostPlace& place, const ActorHosts& options,
                         const std::string& system) {
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double>(options.timeout_s));
  const auto deadline = Clock::now() + timeout;
  const WirePreamble first = preamble(system, 0, static_cast<std::uint32_t>(place.index), 0);
  std::string why;
  while (Clock::now() < deadline) {
    const std::vector<HostPlace> places =
        place.meeting.empty() ? std::vector<HostPlace>{place} : read_rendezvous(place);
    for (const HostPlace& each : places) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      try {
        return {.place = each,
                .session = dial(each.trainer, each.secret, first,
                                std::clamp<std::chrono::milliseconds>(
                                    left, std::chrono::milliseconds(1), kOneAddress))};
      } catch (const Error& error) {
        const bool may_come = error.code() == Errc::io || error.code() == Errc::unavailable ||
                              error.code() == Errc::timeout;
        if (!may_come) throw;
        why = fmt::format(
            "tls://{} doesn't let it in: {}; another process may have WEFT_HOST_INDEX = {}, or "
            "host 0 another secret, system name or WEFT_HOSTS, which its log says",
            each.trainer, error.what(), place.index);
        if (error.code() == Errc::unavailable) {
          why = fmt::format("{}; start host 0, and open its port for this host", error.what());
        }
      }
    }
    std::this_thread::sleep_for(kDialAgainAfter);
  }
  late(place, options, system, why);
}

std::unique_ptr<WireDoor> open_agents_door(const ReachedHost& reached) {
  const HostPlace& place = reached.place;
  const std::string host = place.address.empty() ? own_address(reached.session) : place.address;
  return std::make_unique<WireDoor>(
      host, place.ports, secret_context(place.secret, kPurpose, TlsSide::server), log_line);
}

TlsSession reach_agent(const ReachedHost& reached, const std::string& system,
                       std::uint64_t generation, int host, const std::string& address,
                       std::chrono::milliseconds timeout) {
  return dial(address, reached.place.secret,
              preamble(system, generation, static_cast<std::uint32_t>(reached.place.index),
                       static_cast<std::uint32_t>(host)),
              timeout);
}

WirePreamble answer_to_host(const WirePreamble& received, const std::string& system,
                            std::uint64_t generation, std::uint32_t self, std::uint32_t host_count,
                            const std::function<bool(int host)>& is_linked) {
  const std::uint32_t from = received.from.host;
  if (from <= self || from >= host_count) {
    fail(Errc::invalid_argument,
         "host {} dials host {} of actor system \"{}\", which has {} hosts: give all hosts the "
         "same WEFT_HOSTS",
         from, self, system, host_count);
  }
  require_same(received, preamble(system, generation, from, self));
  if (is_linked(static_cast<int>(from))) {
    fail(Errc::invalid_argument,
         "two hosts have WEFT_HOST_INDEX = {}: give each host an index of its own", from);
  }
  return preamble(system, generation, self, from);
}

}  // namespace weft
