#include "inspect/systems/system_events.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <weft/tensor/error.hpp>

#include "inspect/process/segment_file.hpp"
#include "inspect/systems/system_mail.hpp"
#include "inspect/systems/system_reader.hpp"
#include "transport/actors/actor_op.hpp"

namespace weft {
namespace {

bool is_message(ActorFunctionKind function) {
  return function == ActorFunctionKind::call || function == ActorFunctionKind::tell;
}

bool is_known(const CallEvent& event) {
  switch (event.kind) {
    case CallEventKind::sent: return is_message(event.function);
    case CallEventKind::answered:
    case CallEventKind::replied: return event.function == ActorFunctionKind::call;
    case CallEventKind::ran:
      return is_message(event.function) || event.function == ActorFunctionKind::work ||
             event.function == ActorFunctionKind::make;
    case CallEventKind::none: break;
  }
  return false;
}

/// The events of one ring, with the ticks at which they were written.
struct RingEvents {
  std::uint32_t slot = 0;
  std::vector<std::pair<std::uint64_t, CallEvent>> events{};
};

class EventsReader {
 public:
  explicit EventsReader(const std::string& id) : id_(id) {}

  SystemEvents read() {
    read_rings();
    // A function that hasn't ended has no event. The snapshot shows this function, because it is
    // read after the rings.
    found_.system = read_actor_system(id_);
    convert();
    read_mail();
    return std::move(found_);
  }

 private:
  void read_rings() {
    const std::optional<SegmentFile> file = SegmentFile::open(actor_table_name(id_));
    if (!file || !file->read(0, &head_, sizeof head_) || head_.magic != kActorTableMagic ||
        head_.version != kActorTableVersion) {
      return;  // read_actor_system() then throws the reason
    }
    std::vector<std::uint64_t> ports(kPeerCountMax);
    if (!file->read(ring_ports_offset(0), ports.data(), ports.size() * sizeof(std::uint64_t))) {
      return;
    }
    for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
      for (std::uint32_t port = 0; port < kPortCountMax; ++port) {
        if ((ports[slot] >> port & 1U) != 0) read_ring(*file, slot, port);
      }
    }
    const TickSource source = head_.tick_source == static_cast<std::uint32_t>(TickSource::processor)
                                  ? TickSource::processor
                                  : TickSource::monotonic;
    const box_format::ClockPairV2 now = read_clock_pair(source);
    scale_.emplace(source, std::vector{head_.start, now});
    found_.unix_minus_monotonic_ns = now.realtime_ns - now.monotonic_ns;
  }

  /// Copies the ring twice. A record that is equal in both copies is complete.
  void read_ring(const SegmentFile& file, std::uint32_t slot, std::uint32_t port) {
    const std::uint64_t offset = call_ring_offset(slot, port);
    const auto first = std::make_unique<CallRing>();
    const auto second = std::make_unique<CallRing>();
    if (!file.read(offset, first.get(), sizeof(CallRing)) ||
        !file.read(offset, second.get(), sizeof(CallRing))) {
      return;
    }
    RingEvents ring{.slot = slot};
    for (std::uint32_t i = 0; i < kCallRingRecords; ++i) {
      std::array<std::uint64_t, 4> words{};
      bool is_whole = true;
      for (std::size_t w = 0; w < words.size(); ++w) {
        words[w] = first->records[i].words[w].load(std::memory_order_relaxed);
        is_whole =
            is_whole && words[w] == second->records[i].words[w].load(std::memory_order_relaxed);
      }
      if (!is_whole || words[0] <= CallRingRecord::kClaimed) continue;
      ring.events.emplace_back(words[0], CallEvent::of(words[1], words[2], words[3]));
    }
    rings_.push_back(std::move(ring));
  }

  void convert() {
    const std::int64_t earliest_ns = std::max<std::int64_t>(0, head_.start.monotonic_ns);
    const std::size_t actors = found_.system.actors.size();
    for (const RingEvents& ring : rings_) {
      for (const auto& [tick, event] : ring.events) {
        SystemEvent one{.slot = ring.slot, .event = event, .at_ns = scale_->monotonic_ns(tick)};
        if (!is_known(event) || event.row >= actors || one.at_ns < earliest_ns ||
            one.at_ns > found_.system.at_ns) {
          continue;
        }
        const std::uint32_t caller = event.value & 0xffff'ffffU;
        if (event.kind == CallEventKind::ran) {
          one.begin_ns = std::clamp(scale_->monotonic_ns(event.value), earliest_ns, one.at_ns);
        } else if (event.kind != CallEventKind::replied && caller > actors) {
          continue;
        }
        found_.events.push_back(one);
      }
    }
    std::ranges::stable_sort(found_.events, {}, &SystemEvent::at_ns);
  }

  void read_mail() {
    std::map<std::uint32_t, SystemMail> mails;  // by slot
    std::map<std::uint32_t, std::uint32_t> incarnations;
    for (const SystemProcess& process : found_.system.processes) {
      try {
        if (auto mail = SystemMail::open(id_, process.peer)) {
          mails.emplace(process.peer.slot, std::move(*mail));
          incarnations[process.peer.slot] = process.peer.incarnation & 0xffffU;
        }
      } catch (const Error&) {  // the snapshot's remarks have the reason
      }
    }
    for (const auto& [slot, mail] : mails) {
      for (std::uint32_t port = 1; port < mail.port_count(); ++port) {
        for (const std::uint32_t sender : mail.senders(port)) {
          if (!incarnations.contains(sender)) continue;
          for (const SystemMail::Waiting& message : mail.waiting(port, sender)) {
            const ActorOp op = op_of_kind(message.kind);
            if (op != ActorOp::call && op != ActorOp::tell) continue;
            found_.open.insert({sender, incarnations.at(sender), op == ActorOp::call,
                                message.call & CallEvent::kNumberMask});
          }
        }
      }
    }
    for (const SystemEvent& event : found_.events) {
      if (event.event.kind != CallEventKind::sent ||
          event.event.function != ActorFunctionKind::call) {
        continue;
      }
      const auto mail = mails.find(event.slot);
      if (mail != mails.end() && incarnations.at(event.slot) == event.event.incarnation &&
          mail->second.awaits(event.event.number)) {
        found_.awaited.insert(event.message());
      }
    }
  }

  const std::string& id_;
  ActorTableHead head_{};
  std::vector<RingEvents> rings_;
  std::optional<TickScale> scale_;
  SystemEvents found_;
};

}  // namespace

MessageId SystemEvent::message() const {
  const bool is_from_peer =
      event.kind == CallEventKind::ran || event.kind == CallEventKind::replied;
  return {.slot = is_from_peer ? event.peer : slot,
          .incarnation = is_from_peer ? event.peer_incarnation : event.incarnation,
          .is_call = event.function == ActorFunctionKind::call,
          .number = event.number};
}

SystemEvents read_system_events(const std::string& id) { return EventsReader(id).read(); }

}  // namespace weft
