#include "transport/lanes/peer_memory.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

std::string heap_name(std::string_view system, PeerId peer) {
  return fmt::format("weft-{}-heap-{}.{}", system, peer.slot, peer.incarnation);
}

void require_valid(const PeerMemoryOptions& options) {
  if (options.port_count >= 1 && options.port_count <= kPortCountMax &&
      options.heap_bytes >= kBlockBytesMin) {
    return;
  }
  fail(Errc::invalid_argument,
       "a process of an actor system: port_count = {}, heap_bytes = {}: expected 1 to {} ports and "
       "at least {} bytes",
       options.port_count, options.heap_bytes, kPortCountMax, kBlockBytesMin);
}

void write_mail(Segment& mail, const PeerMemoryOptions& options) {
  mail.reserve(0, ledger_offset());
  for (std::uint32_t port = 0; port < options.port_count; ++port) {
    mail.reserve(port_offset(port), sizeof(PortHead));
  }
  auto* header = new (mail.data()) MailHeader{};
  header->version = kLaneVersion;
  header->port_count = options.port_count;
  header->heap_bytes = options.heap_bytes;
  header->has_one_bell = options.has_one_bell ? 1 : 0;
  std::atomic_ref(header->magic).store(kMailMagic, std::memory_order_release);
}

/// Returns the number of ports. Throws if the header doesn't fit this version or the mappings'
/// sizes.
std::uint32_t read_mail(const Segment& mail, const Segment& heap) {
  auto& header = *reinterpret_cast<MailHeader*>(mail.data());
  const std::uint64_t magic = std::atomic_ref(header.magic).load(std::memory_order_acquire);
  const std::uint32_t version = header.version;
  const std::uint32_t port_count = header.port_count;
  const std::uint64_t heap_bytes = header.heap_bytes;
  if (magic == 0) fail(Errc::not_found, "segment {} is still being made", mail.name());
  if (magic != kMailMagic) {
    fail(Errc::corrupt, "segment {} isn't the mail of a process: its first word is {:#x}",
         mail.name(), magic);
  }
  if (version != kLaneVersion) {
    fail(Errc::version,
         "segment {}: mail of version {}, but this program reads version {}; build both programs "
         "with the same weft",
         mail.name(), version, kLaneVersion);
  }
  if (port_count < 1 || port_count > kPortCountMax || mail_bytes(port_count) > mail.capacity() ||
      heap_bytes > heap.capacity()) {
    fail(Errc::corrupt, "segment {} of {} bytes: {} ports, and a heap of {} bytes where {} are",
         mail.name(), mail.capacity(), port_count, heap_bytes, heap.capacity());
  }
  return port_count;
}

}  // namespace

PeerMemory::PeerMemory(Segment mail, Segment heap, PeerId peer, std::uint32_t port_count)
    : mail_(std::move(mail)), heap_(std::move(heap)), peer_(peer), port_count_(port_count) {}

std::string PeerMemory::mail_name(std::string_view system, PeerId peer) {
  return fmt::format("weft-{}-mail-{}.{}", system, peer.slot, peer.incarnation);
}

PeerMemory PeerMemory::create(std::string_view system, PeerId peer,
                              const PeerMemoryOptions& options) {
  require_valid(options);
  try {
    Segment heap = Segment::create(heap_name(system, peer), options.heap_bytes);
    Segment mail = Segment::create(mail_name(system, peer), mail_bytes(options.port_count));
    write_mail(mail, options);
    return {std::move(mail), std::move(heap), peer, options.port_count};
  } catch (...) {
    remove(system, peer);
    throw;
  }
}

PeerMemory PeerMemory::open(std::string_view system, PeerId peer) {
  Segment mail = Segment::open(mail_name(system, peer), false, sizeof(MailHeader));
  Segment heap = Segment::open(heap_name(system, peer), true, kBlockBytesMin);
  const std::uint32_t port_count = read_mail(mail, heap);
  return {std::move(mail), std::move(heap), peer, port_count};
}

void PeerMemory::remove(std::string_view system, PeerId peer) noexcept {
  Segment::remove(mail_name(system, peer));
  Segment::remove(heap_name(system, peer));
}

PortHead& PeerMemory::port(std::uint32_t port) const {
  WEFT_CHECK(port < port_count_, port, port_count_);
  return *reinterpret_cast<PortHead*>(mail_.data() + port_offset(port));
}

PortHead& PeerMemory::bell_of(std::uint32_t port) const {
  const auto* header = reinterpret_cast<const MailHeader*>(mail_.data());
  return this->port(header->has_one_bell != 0 ? 0 : port);
}

Lane& PeerMemory::lane(std::uint32_t port, std::uint32_t sender) const {
  WEFT_CHECK(port < port_count_ && sender < kPeerCountMax, port, sender);
  return *reinterpret_cast<Lane*>(mail_.data() + lane_offset(port, sender));
}

Lane& PeerMemory::open_lane(std::uint32_t port, std::uint32_t sender) {
  PortHead& head = this->port(port);
  Lane& lane = this->lane(port, sender);
  mail_.reserve(lane_offset(port, sender), sizeof(Lane));
  head.opened[sender / 64].fetch_or(std::uint64_t{1} << (sender % 64), std::memory_order_seq_cst);
  return lane;
}

LedgerRow& PeerMemory::ledger_row(std::uint32_t index) const {
  WEFT_CHECK(index < kBlockCountMax, index);
  return reinterpret_cast<LedgerRow*>(mail_.data() + ledger_offset())[index];
}

std::atomic<std::uint64_t>& PeerMemory::call(std::uint32_t index) const {
  WEFT_CHECK(index < kCallCountMax, index);
  return reinterpret_cast<std::atomic<std::uint64_t>*>(mail_.data() + calls_offset())[index];
}

void PeerMemory::add_block(std::uint32_t index, std::size_t offset, std::size_t bytes) {
  mail_.reserve(ledger_offset() + index * sizeof(LedgerRow), sizeof(LedgerRow));
  heap_.reserve(offset, bytes);
  LedgerRow& row = ledger_row(index);
  row.offset.store(offset, std::memory_order_relaxed);
  row.bytes.store(bytes, std::memory_order_relaxed);
  reinterpret_cast<MailHeader*>(mail_.data())
      ->row_count.store(index + 1, std::memory_order_release);
}

std::uint32_t PeerMemory::block_count() const {
  const auto* header = reinterpret_cast<const MailHeader*>(mail_.data());
  return std::min(header->row_count.load(std::memory_order_acquire), kBlockCountMax);
}

}  // namespace weft
