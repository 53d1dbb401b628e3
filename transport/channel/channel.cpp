#include "transport/channel/channel.hpp"

#include <atomic>
#include <new>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::size_t kNameBytesMax = 64;

bool sizes_ok(std::uint64_t slot_count, std::uint64_t slot_bytes) {
  return slot_count >= 1 && slot_count <= kSlotCountMax && slot_bytes >= 1 &&
         slot_bytes <= kSlotBytesMax;
}

std::uint64_t rounded_slot_bytes(std::uint64_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

void require_valid(const ChannelOptions& options) {
  if (sizes_ok(static_cast<std::uint64_t>(options.slot_count), options.slot_bytes)) return;
  fail(Errc::invalid_argument,
       "channel '{}': slot_count = {}, slot_bytes = {}; expected 1 to {} slots of 1 to {} bytes",
       options.name, options.slot_count, options.slot_bytes, kSlotCountMax, kSlotBytesMax);
}

std::string label_of(std::string_view job, std::string_view name) {
  return fmt::format("channel '{}' of job {}", name, job);
}

/// Fills a segment of channel_bytes() bytes. Writes the magic number last, since other processes
/// read the segment only after that.
void write_channel(Segment& segment, const ChannelOptions& options) {
  segment.reserve(0, segment.capacity());
  auto* header = new (segment.data()) ChannelHeader{};
  header->version = kChannelVersion;
  header->slot_count = static_cast<std::uint32_t>(options.slot_count);
  header->slot_bytes = rounded_slot_bytes(options.slot_bytes);
  std::atomic_ref(header->magic).store(kChannelMagic, std::memory_order_release);
}

std::size_t bytes_of(const ChannelOptions& options) {
  require_valid(options);
  return channel_bytes(static_cast<std::uint32_t>(options.slot_count),
                       rounded_slot_bytes(options.slot_bytes));
}

/// Returns a copy of the header. Checks every size against the mapping.
ChannelHeader read_header(const Segment& segment) {
  auto& format = *reinterpret_cast<ChannelHeader*>(segment.data());
  const std::uint64_t magic = std::atomic_ref(format.magic).load(std::memory_order_acquire);
  const ChannelHeader header = format;
  if (magic == 0) fail(Errc::not_found, "segment {} is still being made", segment.name());
  if (magic != kChannelMagic) {
    fail(Errc::corrupt, "segment {} isn't a channel: its first word is {:#x}", segment.name(),
         magic);
  }
  if (header.version != kChannelVersion) {
    fail(Errc::version, "segment {}: channel of version {}, this program reads version {}",
         segment.name(), header.version, kChannelVersion);
  }
  if (!sizes_ok(header.slot_count, header.slot_bytes) || header.slot_bytes % kSlotAlignment != 0 ||
      channel_bytes(header.slot_count, header.slot_bytes) > segment.capacity()) {
    fail(Errc::corrupt, "segment {} of {} bytes: {} slots of {} bytes don't fit together",
         segment.name(), segment.capacity(), header.slot_count, header.slot_bytes);
  }
  return header;
}

}  // namespace

Channel::Channel(Segment segment, std::string label)
    : segment_(std::move(segment)), label_(std::move(label)) {
  const ChannelHeader header = read_header(segment_);
  slot_count_ = header.slot_count;
  slot_bytes_ = header.slot_bytes;
}

std::string Channel::segment_name(std::string_view job, std::string_view name) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  if (name.empty() || name.size() > kNameBytesMax ||
      name.find_first_not_of(kLetters) != std::string_view::npos) {
    fail(Errc::invalid_argument,
         "channel name '{}': expected 1 to {} characters of a-z A-Z 0-9 _ .", name, kNameBytesMax);
  }
  return fmt::format("weft-{}-channel-{}", job, name);
}

Channel Channel::create(const ChannelOptions& options) {
  const std::string name = segment_name(options.job, options.name);
  Segment segment = Segment::create(name, bytes_of(options));
  try {
    write_channel(segment, options);
    return Channel(std::move(segment), label_of(options.job, options.name));
  } catch (...) {
    Segment::remove(name);
    throw;
  }
}

Channel Channel::open(std::string_view job, std::string_view name) {
  return Channel(Segment::open(segment_name(job, name), false, sizeof(ChannelHeader)),
                 label_of(job, name));
}

Channel Channel::anonymous(const ChannelOptions& options) {
  Segment segment = Segment::anonymous(bytes_of(options));
  write_channel(segment, options);
  return Channel(std::move(segment), label_of(options.job, options.name));
}

ChannelSide& Channel::side(ChannelRole role) const {
  auto* sides = reinterpret_cast<ChannelSide*>(segment_.data() + sizeof(ChannelHeader));
  return sides[static_cast<std::size_t>(role)];
}

ChannelWord* Channel::lane(ChannelRole sender) const {
  return reinterpret_cast<ChannelWord*>(segment_.data() + lane_offset(sender, slot_count_));
}

std::byte* Channel::slot(std::uint32_t index) const {
  WEFT_CHECK(index < slot_count_, index, slot_count_);
  return segment_.data() + slots_offset(slot_count_) + index * slot_bytes_;
}

ChannelWriter::ChannelWriter(Channel& channel, WaitPolicy policy, const JobMemory* job)
    : port_(channel, ChannelRole::writer, policy, job) {
  for (std::uint32_t slot = channel.slot_count(); slot > 0; --slot) free_.push_back(slot - 1);
}

std::optional<std::span<std::byte>> ChannelWriter::try_loan(std::size_t bytes) {
  const Channel& channel = port_.channel();
  if (port_.closed() || bytes > channel.slot_bytes()) {
    fail(Errc::invalid_argument,
         "{}: a loan of {} bytes{}, expected at most {} bytes before close()", channel.label(),
         bytes, port_.closed() ? " after close()" : "", channel.slot_bytes());
  }
  while (const auto message = port_.take()) free_.push_back(message->slot);
  if (free_.empty()) return std::nullopt;
  loaned_bytes_ = bytes;
  port_.note_filling(count() + 1);
  return std::span(channel.slot(free_.back()), bytes);
}

std::span<std::byte> ChannelWriter::loan(std::size_t bytes) {
  for (;;) {
    if (const auto room = try_loan(bytes)) return *room;
    port_.await();
  }
}

void ChannelWriter::publish() {
  if (!loaned_bytes_) {
    fail(Errc::invalid_argument, "{}: nothing to publish: loan() comes first",
         port_.channel().label());
  }
  port_.send({.slot = free_.back(), .bytes = *loaned_bytes_});
  free_.pop_back();
  loaned_bytes_.reset();
}

void ChannelWriter::close() noexcept {
  loaned_bytes_.reset();
  port_.close();
}

ChannelFrame::ChannelFrame(ChannelFrame&& other) noexcept
    : port_(std::exchange(other.port_, nullptr)),
      slot_(other.slot_),
      number_(other.number_),
      bytes_(other.bytes_) {}

ChannelFrame& ChannelFrame::operator=(ChannelFrame&& other) noexcept {
  std::swap(port_, other.port_);
  std::swap(slot_, other.slot_);
  std::swap(number_, other.number_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

ChannelFrame::~ChannelFrame() {
  if (port_ != nullptr) port_->send({.slot = slot_, .bytes = 0});
}

std::optional<ChannelFrame> ChannelReader::try_receive() {
  const auto message = port_.take();
  if (!message) return std::nullopt;
  ChannelFrame frame;
  frame.port_ = &port_;
  frame.slot_ = message->slot;
  frame.number_ = count();
  frame.bytes_ = {port_.channel().slot(message->slot), message->bytes};
  return frame;
}

std::optional<ChannelFrame> ChannelReader::receive() {
  for (;;) {
    if (auto frame = try_receive()) return frame;
    if (ended()) return std::nullopt;
    port_.await();
  }
}

}  // namespace weft
