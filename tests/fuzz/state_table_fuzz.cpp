#include "spmd/passes/partition.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "transport/format/state_table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::Mesh mesh({17, 2}, {"data", "model"});
  weft::fuzz_reader(weft::kStateTableFormat, {data, size}, [&](std::span<const std::byte> bytes) {
    const weft::StateTable state = weft::decode_state_table(bytes, mesh);
    for (const weft::StateEntry& entry : state.tensors) {
      const weft::TensorType shard = weft::chip_type(entry.type, entry.sharding, mesh);
      WEFT_CHECK(shard.bytes() >= 0 && shard.bytes() <= entry.type.bytes(), shard.bytes());
    }
    const auto again = weft::encode_state_table(state.tensors, state.loaders, state.commands);
    WEFT_CHECK(weft::decode_state_table(again, mesh) == state);
  });
  return 0;
}
