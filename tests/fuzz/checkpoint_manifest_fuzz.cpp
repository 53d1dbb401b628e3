#include "tests/fuzz/fuzz.hpp"
#include "transport/format/checkpoint_manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzz_reader(weft::kManifestFormat, {data, size}, [](std::span<const std::byte> bytes) {
    const weft::CheckpointManifest manifest = weft::decode_manifest(bytes);
    WEFT_CHECK(weft::decode_manifest(weft::encode_manifest(manifest)) == manifest);
  });
  return 0;
}
