#include "actors/worker/host_wires.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <weft/job/tls.hpp>
#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/network/network_tier.hpp"
#include "transport/network/overlapped_tier.hpp"

namespace weft {
namespace {

/// Returns the numeric address by which this host reaches the trainer. It uses UDP, because
/// connect() then sends nothing.
std::string address_towards(const std::string& trainer) {
  const TlsAddress to = parse_tls_address(trainer, "WEFT_TRAINER");
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found);
  if (error != 0) fail(Errc::io, "WEFT_TRAINER = \"{}\": {}", trainer, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  const int fd = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  const bool is_known = fd >= 0 && ::connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                        ::getsockname(fd, address, &size) == 0;
  const int why = errno;
  if (fd >= 0) ::close(fd);
  if (!is_known) {
    fail(Errc::io,
         "WEFT_TRAINER = \"{}\": this host has no route to it: {}; set an address that all hosts "
         "reach",
         trainer, std::strerror(why));
  }
  char text[NI_MAXHOST];
  const int named = ::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  if (named != 0) fail(Errc::io, "WEFT_TRAINER = \"{}\": {}", trainer, ::gai_strerror(named));
  return text;
}

/// Returns the numeric address at which this host's chips listen. If host 0 doesn't know at which
/// address the other hosts reach it, it listens at all its addresses; the trainer learns the right
/// one from these hosts.
std::string own_host(const HostPlace& place) {
  if (!place.address.empty()) return place.address;
  const std::string trainer = parse_tls_address(place.trainer, "WEFT_TRAINER").host;
  const bool is_any = trainer == "0.0.0.0" || trainer == "::";
  return !place.is_agent() && is_any ? trainer : address_towards(place.trainer);
}

}  // namespace

HostWires::HostWires(const HostWiresOptions& options, const Mesh& mesh,
                     const std::vector<int>& positions, const Assignment& assignment,
                     JobMemory& memory, WorkerLink& link)
    : options_(options), mesh_(mesh), positions_(positions), memory_(memory), link_(link) {
  if (mesh.dcn_atoms() == 0) return;
  const auto end_of = [&](int chip) {
    return WireEnd{.host = static_cast<std::uint32_t>(chip / chips_per_host(mesh)),
                   .worker = static_cast<std::uint32_t>(chip / assignment.chips_per_worker),
                   .chip = static_cast<std::uint32_t>(chip)};
  };
  const std::string host = own_host(options.place);
  WireAddresses own{.generation = options.generation,
                    .first_chip = options.worker * assignment.chips_per_worker};
  for (const int position : positions) {
    const auto make = options.place.uses_ucx ? make_ucx_wires : make_tls_wires;
    wires_.push_back(
        make({.job = options.job_id,
              .generation = options.generation,
              .self = end_of(mesh.device_at(position)),
              .host = host,
              .ports = options.place.ports,
              .secret = options.place.secret,
              .log = [](const std::string& line) { logger("weft.worker")->warn("{}", line); }}));
    own.addresses.push_back(wires_.back()->address());
  }
  link.wires_listen(own);
  const WireAddresses all = link.permits().wait_wires(options.generation);
  for (std::size_t i = 0; i < wires_.size(); ++i) {
    std::vector<WirePeer> peers;
    for (int other = 0; other < mesh.size(); ++other) {
      if (other == positions[i]) continue;
      const int chip = mesh.device_at(other);
      peers.push_back({.end = end_of(chip),
                       .address = all.addresses.at(static_cast<std::size_t>(chip)),
                       .connects_later = !are_twins(mesh, positions[i], other)});
    }
    wires_[i]->connect(std::move(peers));
  }
  bool is_told = false;
  for (const auto& wires : wires_) {
    await_wires(*wires, std::chrono::milliseconds(assignment.timeout_ms), [&] {
      for (const auto& others : wires_) others->progress();
      is_told = is_told || tell_first_lost();
      if (memory.aborted()) fail(Errc::peer_lost, "{}", memory.abort_reason());
    });
  }
}

HostWires::~HostWires() {
  // All wires are closed before the first is destroyed, so that no chip waits for another one's
  // end.
  for (const auto& wires : wires_) wires->close();
}

/// If a wire has broken, tells the trainer and returns true.
bool HostWires::tell_first_lost() const {
  for (std::size_t i = 0; i < wires_.size(); ++i) {
    const auto peers = static_cast<int>(wires_[i]->peers().size());
    for (int wire = 0; wire < peers; ++wire) {
      if (wires_[i]->status(wire).state != WireState::lost) continue;
      tell_lost(i, wire);
      return true;
    }
  }
  return false;
}

void HostWires::tell_lost(std::size_t local_index, int wire) const {
  const auto peer = wires_[local_index]->peers()[static_cast<std::size_t>(wire)];
  link_.wire_lost({.worker = options_.worker,
                   .generation = options_.generation,
                   .chip = mesh_.device_at(positions_[local_index]),
                   .peer = static_cast<std::int32_t>(peer.end.chip),
                   .why = wires_[local_index]->status(wire).why});
}

std::unique_ptr<CollectiveTier> HostWires::tier(int local_index, const Recorder& recorder,
                                                WaitPolicy policy) const {
  if (wires_.empty()) return nullptr;
  const auto index = static_cast<std::size_t>(local_index);
  auto network = std::make_unique<NetworkTier>(memory_, mesh_, positions_[index], *wires_[index],
                                               recorder, policy, [this](const WireLoss& loss) {
                                                 link_.wire_lost({.worker = options_.worker,
                                                                  .generation = options_.generation,
                                                                  .chip = loss.chip,
                                                                  .peer = loss.peer,
                                                                  .why = loss.why});
                                               });
  return std::make_unique<OverlappedTier>(std::move(network), recorder);
}

}  // namespace weft
