#include "tests/fuzz/fuzz.hpp"
#include "transport/format/checkpoint_manifest.hpp"

namespace {

void fuzz_as(const weft::Format& format, const std::uint8_t* data, std::size_t size) {
  weft::fuzz_reader(format, {data, size}, [&](std::span<const std::byte> bytes) {
    const weft::CheckpointManifest manifest = weft::decode_manifest(bytes, format);
    WEFT_CHECK(weft::decode_manifest(weft::encode_manifest(manifest, format), format) == manifest);
  });
}

}  // namespace

/// Reads the fuzz input as a manifest, and as the table of one part of a checkpoint. The shards in
/// such a table needn't cover the whole tensors.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz_as(weft::kManifestFormat, data, size);
  fuzz_as(weft::kPartTableFormat, data, size);
  return 0;
}
