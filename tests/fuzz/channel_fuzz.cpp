/// Reads the fuzz input as the whole segment of a channel whose other side has left.

#include <functional>

#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/planted.hpp"
#include "transport/channel/channel.hpp"
#include "transport/format/shard_frame.hpp"

namespace weft {
namespace {

/// Opens a channel whose segment has these bytes. Its name is removed as soon as the channel is
/// open.
Channel open_planted(std::span<const std::byte> bytes) {
  const std::string job = testing::planted_job();
  const testing::Planted planted(Channel::segment_name(job, "planted"), bytes);
  return Channel::open(job, "planted");
}

void touch(const Channel& channel, std::span<const std::byte> bytes) {
  const Segment& segment = channel.segment();
  WEFT_CHECK(bytes.data() >= segment.data() &&
             bytes.data() + bytes.size() <= segment.data() + segment.capacity());
  xxh3(bytes);
}

void read_all(Channel& channel) {
  channel.side(ChannelRole::reader).attached = 0;
  ChannelReader reader(channel, WaitPolicy{});
  while (const auto frame = reader.try_receive()) {
    touch(channel, frame->bytes());
    read_or_refuse(frame->bytes(), [&](std::span<const std::byte> bytes) {
      touch(channel, view_shard_frame(bytes).payload);
    });
  }
}

void write_all(Channel& channel) {
  channel.side(ChannelRole::writer).attached = 0;
  ChannelWriter writer(channel, WaitPolicy{});
  for (std::uint32_t i = 0; i < 2 * channel.slot_count(); ++i) {
    const auto room = writer.try_loan(channel.slot_bytes());
    if (!room) return;
    touch(channel, *room);
    writer.publish();
  }
}

void use(std::span<const std::byte> bytes, const std::function<void(Channel&)>& side) {
  try {
    Channel channel = open_planted(bytes);
    side(channel);
  } catch (const Error& error) {
    WEFT_CHECK(error.code() == Errc::corrupt || error.code() == Errc::version ||
                   error.code() == Errc::not_found || error.code() == Errc::peer_lost,
               error.what());
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  weft::use(bytes, weft::read_all);
  weft::use(bytes, weft::write_all);
  return 0;
}
