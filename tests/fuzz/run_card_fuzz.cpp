#include "tests/fuzz/fuzz.hpp"
#include "transport/format/run_card.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzz_reader(weft::kRunCardFormat, {data, size}, [](std::span<const std::byte> bytes) {
    const weft::RunCard card = weft::decode_run_card(bytes);
    WEFT_CHECK(weft::decode_run_card(weft::encode_run_card(card)) == card);
  });
  return 0;
}
