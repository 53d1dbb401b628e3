/// Reads the fuzz input as a value of a pipe that another process has written.

#include "actors/user/pipe_end.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const testing::AlignedCopy copy(std::as_bytes(std::span(data, size)));
  read_or_refuse(copy.bytes(), [](std::span<const std::byte> frame) {
    const detail::PipeValue value = read_pipe_frame(frame, nullptr);
    for (const MessagePayload& payload : value.payloads) {
      WEFT_CHECK(payload.bytes.data() >= frame.data() &&
                 payload.bytes.data() + payload.bytes.size() <= frame.data() + frame.size());
    }
  });
  return 0;
}
