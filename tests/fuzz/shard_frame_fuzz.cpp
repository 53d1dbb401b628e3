#include "tests/fuzz/fuzz.hpp"
#include "transport/format/shard_frame.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzz_reader(weft::kShardFormat, {data, size}, [](std::span<const std::byte> bytes) {
    const weft::ShardView view = weft::read_shard_frame(bytes);
    WEFT_CHECK(view.frame_bytes <= bytes.size(), view.frame_bytes, bytes.size());
    WEFT_CHECK(weft::shard_layout(view.header).payload_bytes == view.payload.size());
  });
  return 0;
}
