#include "inspect/systems/system_mail.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/actors/actor_words.hpp"
#include "transport/lanes/peer_memory.hpp"

namespace weft {
namespace {

/// The number of rows of a ledger that are read at once.
constexpr std::uint32_t kRowsAtOnce = 1024;

}  // namespace

std::optional<SystemMail> SystemMail::open(std::string_view system, PeerId peer) {
  std::optional<SegmentFile> file = SegmentFile::open(PeerMemory::mail_name(system, peer));
  if (!file) return {};
  MailHeader header{};
  if (!file->read(0, &header, sizeof header)) {
    fail(Errc::corrupt, "segment {} has no header", file->name());
  }
  if (header.magic == 0) return {};  // the memory is still being made
  if (header.magic != kMailMagic) {
    fail(Errc::corrupt, "segment {} isn't the mail of a process: its first word is {:#x}",
         file->name(), header.magic);
  }
  if (header.version != kLaneVersion) {
    fail(Errc::version, "segment {}: mail of version {}, but this program reads version {}",
         file->name(), header.version, kLaneVersion);
  }
  if (header.port_count < 1 || header.port_count > kPortCountMax) {
    fail(Errc::corrupt, "segment {} says that it has {} ports: expected 1 to {}", file->name(),
         header.port_count, kPortCountMax);
  }
  return SystemMail(std::move(*file), header.port_count, header.heap_bytes);
}

bool SystemMail::awaits(std::uint64_t call) const {
  std::uint64_t number = 0;
  const std::uint64_t offset = calls_offset() + call % kCallCountMax * sizeof number;
  return call != 0 && file_.read(offset, &number, sizeof number) && number == call;
}

std::vector<std::uint32_t> SystemMail::senders(std::uint32_t port) const {
  std::vector<std::uint32_t> slots;
  PortHead head{};
  if (port >= port_count_ || !file_.read(port_offset(port), &head, sizeof head)) return slots;
  for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
    if ((head.opened[slot / 64].load(std::memory_order_relaxed) >> (slot % 64) & 1U) != 0) {
      slots.push_back(slot);
    }
  }
  return slots;
}

std::vector<SystemMail::Waiting> SystemMail::waiting(std::uint32_t port,
                                                     std::uint32_t sender) const {
  std::vector<Waiting> messages;
  const auto lane = std::make_unique<Lane>();
  if (port >= port_count_ || !file_.read(lane_offset(port, sender), lane.get(), sizeof *lane)) {
    return messages;
  }
  const std::uint64_t head = lane->head.load(std::memory_order_relaxed);
  for (std::uint64_t i = 0; i < kLaneEntryCount; ++i) {
    const Entry& entry = lane->entries[(head + i) % kLaneEntryCount];
    if (entry.number.load(std::memory_order_relaxed) != head + i + 1) break;
    messages.push_back({.call = entry.call, .target = row_of(entry.target), .kind = entry.kind});
  }
  return messages;
}

void SystemMail::for_each_block(
    const std::function<void(std::uint32_t, const LedgerRow&)>& use) const {
  MailHeader header{};
  if (!file_.read(0, &header, sizeof header)) return;
  const std::uint32_t count =
      std::min(header.row_count.load(std::memory_order_relaxed), kBlockCountMax);
  std::vector<LedgerRow> rows(std::min(count, kRowsAtOnce));
  for (std::uint32_t first = 0; first < count; first += kRowsAtOnce) {
    const std::uint32_t part = std::min(count - first, kRowsAtOnce);
    if (!file_.read(ledger_offset() + first * sizeof(LedgerRow), rows.data(),
                    part * sizeof(LedgerRow))) {
      return;
    }
    for (std::uint32_t i = 0; i < part; ++i) use(first + i, rows[i]);
  }
}

}  // namespace weft
