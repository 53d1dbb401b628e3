#include "tests/support/socket_tier.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>

#include <weft/tensor/error.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/collectives/algorithm.hpp"
#include "transport/collectives/call_record.hpp"
#include "transport/reduce/reduce.hpp"

namespace weft::testing {
namespace {

using Clock = std::chrono::steady_clock;

struct Header {
  std::uint64_t number = 0;
  std::uint64_t signature = 0;
  std::uint64_t payload_bytes = 0;
  CallWords words{};
  std::array<char, 64> name{};
};

/// The message of the sync in progress, in one direction of a connection to a peer.
struct Message {
  std::vector<std::byte> bytes;
  std::size_t done = 0;  ///< bytes sent or received
  bool is_complete() const { return done == bytes.size(); }
};

struct Peer {
  int member = 0;  ///< the peer's index in the group
  int chip = 0;    ///< the peer's device id
  int socket = -1;
  Message sent;
  Message received;
  std::size_t read = 0;  ///< bytes of the payload that this stage's transfers have read
};

struct SocketCall final : TierCall {
  std::vector<int> chips;  ///< device ids, in group order
  int index = 0;
  std::vector<Schedule> schedules;  ///< the schedules of all members
};

class SocketTier final : public CollectiveTier {
 public:
  SocketTier(JobMemory& memory, const Mesh& mesh, int position, const SocketGrid& sockets,
             BoardWriter board, WaitPolicy policy)
      : memory_(memory),
        mesh_(mesh),
        position_(position),
        sockets_(sockets),
        board_(board),
        policy_(policy),
        arena_(memory.arena(chip_on_host(mesh, position))),
        last_(static_cast<std::size_t>(mesh.size())) {}

  std::unique_ptr<const TierCall> prepare(const CollectiveCall& call) override {
    auto prepared = std::make_unique<SocketCall>();
    for (const int member : mesh_.group(position_, call.atoms)) {
      prepared->chips.push_back(mesh_.device_at(member));
    }
    prepared->index = static_cast<int>(mesh_.index_in(position_, call.atoms));
    const auto n = static_cast<int>(prepared->chips.size());
    const bool rings =
        call.kind == CollectiveKind::all_gather || call.kind == CollectiveKind::broadcast;
    const bool empty = bytes_of(call, n).source == 0;
    for (int member = 0; member < n; ++member) {
      prepared->schedules.push_back(
          rings && !empty
              ? ring_schedule(call, n, member)
              : make_schedule(empty ? Algorithm::signal : Algorithm::pull, call, n, member));
    }
    return prepared;
  }

  void start(const StartedCall& started, const TierCall& call) override {
    started_ = &started;
    call_ = static_cast<const SocketCall*>(&call);
    stage_ = 0;
    peers_.clear();
    const auto n = static_cast<int>(call_->chips.size());
    for (int i = 1; i < n; ++i) {
      const int member = (call_->index + i) % n;
      const int chip = call_->chips[static_cast<std::size_t>(member)];
      peers_.push_back({member, chip, sockets_.end(own_chip(), chip), {}, {}});
    }
    perform_stage();
    announce();
  }

  bool poll() override {
    while (pass_sync()) {
      ++stage_;
      perform_stage();
      if (stage_ == own_schedule().sync_count()) return true;
      announce();
    }
    if (memory_.aborted()) {
      fail(Errc::peer_lost, "{}; chip {} was in {} (step {}), waiting for chip {}",
           memory_.abort_reason(), own_chip(), to_string(*started_, mesh_), started_->step,
           awaited()->chip);
    }
    return false;
  }

  void wait() override {
    const Clock::time_point since = Clock::now();
    while (!poll()) {
      board_.waiting_for(awaited()->chip);
      if (Clock::now() - since >= policy_.deadline) fail_timeout(Clock::now() - since);
      std::vector<pollfd> ends;
      for (const Peer& peer : peers_) {
        const int events =
            (peer.received.is_complete() ? 0 : POLLIN) | (peer.sent.is_complete() ? 0 : POLLOUT);
        if (events != 0) ends.push_back({peer.socket, static_cast<short>(events), 0});
      }
      ::poll(ends.data(), ends.size(), static_cast<int>(kSleepSlice.count()));
    }
  }

 private:
  int own_chip() const { return mesh_.device_at(position_); }
  const Schedule& schedule_of(int member) const {
    return call_->schedules[static_cast<std::size_t>(member)];
  }
  const Schedule& own_schedule() const { return schedule_of(call_->index); }
  std::size_t bytes_of_part(const Transfer& transfer) const {
    return static_cast<std::size_t>(transfer.count * byte_size(own_schedule().dtype));
  }

  /// Calls body(transfer, offset in the arena) for each part of this chip's arena that the next
  /// stage of `member` reads.
  template <typename Body>
  void each_part_read_by(int member, const Body& body) const {
    for (const Transfer& transfer : schedule_of(member).stages[stage_ + 1]) {
      if (transfer.from.member != kAllMembers && transfer.from.member != call_->index) continue;
      for_each_part(transfer, [&](std::size_t offset, std::size_t) {
        body(transfer, transfer.from.offset + offset);
      });
    }
  }

  void announce() {
    for (Peer& peer : peers_) {
      Header header{.number = started_->number,
                    .signature = started_->signature,
                    .words = started_->call->words()};
      started_->call->name().copy(header.name.data(), header.name.size() - 1);
      std::vector<std::byte> message(sizeof header);
      each_part_read_by(peer.member, [&](const Transfer& transfer, std::size_t offset) {
        const std::byte* part = arena_ + offset;
        message.insert(message.end(), part, part + bytes_of_part(transfer));
      });
      header.payload_bytes = message.size() - sizeof header;
      std::memcpy(message.data(), &header, sizeof header);
      peer.sent = {std::move(message)};
      peer.received = {std::vector<std::byte>(sizeof header)};
      peer.read = sizeof header;
    }
  }

  bool pass_sync() {
    bool complete = true;
    // Sends to all peers before it reads, because the message of a peer that has called something
    // else ends this call.
    for (Peer& peer : peers_) send(peer);
    for (Peer& peer : peers_) {
      receive(peer);
      complete = complete && peer.sent.is_complete() && peer.received.is_complete();
    }
    return complete;
  }

  /// Returns the number of bytes moved, 0 if the socket isn't ready. Throws peer_lost if the peer
  /// is gone.
  std::size_t moved(const Peer& peer, ssize_t result) const {
    if (result > 0) return static_cast<std::size_t>(result);
    if (result < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    fail(Errc::peer_lost, "chip {} lost its connection to chip {} in {} (step {})", own_chip(),
         peer.chip, to_string(*started_, mesh_), started_->step);
  }

  void send(Peer& peer) const {
    Message& message = peer.sent;
    while (!message.is_complete()) {
      const std::size_t bytes =
          moved(peer, ::send(peer.socket, message.bytes.data() + message.done,
                             message.bytes.size() - message.done, MSG_NOSIGNAL));
      if (bytes == 0) return;
      message.done += bytes;
    }
  }

  void receive(Peer& peer) {
    Message& message = peer.received;
    while (!message.is_complete()) {
      const std::size_t bytes = moved(peer, ::recv(peer.socket, message.bytes.data() + message.done,
                                                   message.bytes.size() - message.done, 0));
      if (bytes == 0) return;
      message.done += bytes;
      if (message.done == sizeof(Header)) take_header(peer);
    }
  }

  void take_header(Peer& peer) {
    Header header;
    std::memcpy(&header, peer.received.bytes.data(), sizeof header);
    RecordedCall& called = last_[static_cast<std::size_t>(peer.chip)];
    called = {header.number, header.words, header.name.data()};
    if (header.signature != started_->signature) {
      fail(Errc::program_divergence, "at step {} chip {} called {}, but chip {} called {}",
           started_->step, own_chip(), to_string(*started_, mesh_), peer.chip,
           to_string(called, mesh_));
    }
    peer.received.bytes.resize(sizeof header + header.payload_bytes);
  }

  /// Returns the address of the next `bytes` that the stage reads from a member's arena.
  std::byte* next_part(int member, std::size_t own_offset, std::size_t bytes) {
    if (member == call_->index) return arena_ + own_offset;
    Peer& peer = *std::ranges::find(peers_, member, &Peer::member);
    std::byte* part = peer.received.bytes.data() + peer.read;
    peer.read += bytes;
    return part;
  }

  void perform_stage() {
    for (const Transfer& transfer : own_schedule().stages[stage_]) {
      const std::size_t bytes = bytes_of_part(transfer);
      for_each_part(transfer, [&](std::size_t from_offset, std::size_t to_offset) {
        const std::size_t offset = transfer.from.offset + from_offset;
        std::byte* to = arena_ + transfer.to.offset + to_offset;
        if (transfer.from.member == kAllMembers) return reduce_all(transfer, offset, to);
        const std::byte* from = next_part(transfer.from.member, offset, bytes);
        if (to != from) std::memcpy(to, from, bytes);
      });
    }
  }

  void reduce_all(const Transfer& transfer, std::size_t offset, std::byte* to) {
    std::vector<std::byte*> parts;
    for (int member = 0; member < static_cast<int>(call_->chips.size()); ++member) {
      parts.push_back(next_part(member, offset, bytes_of_part(transfer)));
    }
    std::byte* const destination[] = {to};
    reduce(own_schedule().reduce, own_schedule().dtype, {parts}, {destination}, transfer.count);
  }

  /// Returns the first peer whose message to this chip, or this chip's message to it, is
  /// incomplete.
  const Peer* awaited() const {
    for (const Peer& peer : peers_) {
      if (!peer.received.is_complete() || !peer.sent.is_complete()) return &peer;
    }
    return nullptr;
  }

  [[noreturn]] void fail_timeout(Clock::duration waited) const {
    std::string missing;
    for (const Peer& peer : peers_) {
      if (peer.received.is_complete()) continue;
      missing += fmt::format("{}chip {} (last called: {})", missing.empty() ? "" : ", ", peer.chip,
                             to_string(last_[static_cast<std::size_t>(peer.chip)], mesh_));
    }
    fail(Errc::timeout, "chip {} waited {:.3f} s in {} (step {}) for {}", own_chip(),
         std::chrono::duration<double>(waited).count(), to_string(*started_, mesh_), started_->step,
         missing);
  }

  JobMemory& memory_;
  const Mesh& mesh_;
  const int position_;
  const SocketGrid& sockets_;
  const BoardWriter board_;
  const WaitPolicy policy_;
  std::byte* const arena_;
  std::vector<RecordedCall> last_;  ///< indexed by device id

  // These members describe the collective in progress.
  const StartedCall* started_ = nullptr;
  const SocketCall* call_ = nullptr;
  std::size_t stage_ = 0;  ///< the stage before the sync in progress
  std::vector<Peer> peers_;
};

}  // namespace

SocketGrid::SocketGrid(int num_chips)
    : num_chips_(num_chips), ends_(static_cast<std::size_t>(num_chips * num_chips), -1) {
  for (int chip = 0; chip < num_chips; ++chip) {
    for (int peer = 0; peer < chip; ++peer) {
      int pair[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
        throw std::system_error(errno, std::generic_category(), "socketpair");
      }
      ends_[static_cast<std::size_t>(chip * num_chips + peer)] = pair[0];
      ends_[static_cast<std::size_t>(peer * num_chips + chip)] = pair[1];
    }
  }
}

SocketGrid::~SocketGrid() {
  for (const int end : ends_) {
    if (end >= 0) close(end);
  }
}

Schedule ring_schedule(const CollectiveCall& call, int group_size, int index) {
  const auto n = static_cast<std::size_t>(group_size);
  const auto own = static_cast<std::size_t>(index);
  const int before = (index + group_size - 1) % group_size;
  const std::size_t row =
      static_cast<std::size_t>(call.count) * static_cast<std::size_t>(byte_size(call.dtype));
  const auto at = [](int member, std::size_t offset) {
    return TransferEnd{TransferEnd::Region::arena, member, offset};
  };
  Schedule schedule{{}, call.reduce, call.dtype};
  schedule.stages.resize(n + 1);
  if (call.kind == CollectiveKind::all_gather) {
    const auto outer = static_cast<std::size_t>(call.outer);
    schedule.stages[0].push_back({at(index, call.source),
                                  at(index, call.destination + own * row),
                                  call.count,
                                  {outer, row, n * row},
                                  {}});
    for (std::size_t stage = 1; stage < n; ++stage) {
      const std::size_t offset = call.destination + (own + n - stage) % n * row;
      schedule.stages[stage].push_back(
          {at(before, offset), at(index, offset), call.count, {outer, n * row, n * row}, {}});
    }
    return schedule;
  }
  WEFT_CHECK(call.kind == CollectiveKind::broadcast, to_string(call.kind));
  const auto root = static_cast<std::size_t>(call.from[0]);
  const std::size_t stage = (own + n - root) % n;
  schedule.stages[stage].push_back(
      {stage == 0 ? at(index, call.source) : at(before, call.destination),
       at(index, call.destination),
       call.count,
       {},
       {}});
  return schedule;
}

std::unique_ptr<CollectiveTier> make_socket_tier(JobMemory& memory, const Mesh& mesh, int position,
                                                 const SocketGrid& sockets, BoardWriter board,
                                                 WaitPolicy policy) {
  return std::make_unique<SocketTier>(memory, mesh, position, sockets, board, policy);
}

}  // namespace weft::testing
