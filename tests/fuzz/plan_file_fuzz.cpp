#include "tests/fuzz/fuzz.hpp"
#include "transport/format/plan_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzz_reader(weft::kPlanFormat, {data, size}, [](std::span<const std::byte> bytes) {
    const weft::Plan plan = weft::decode_plan(bytes);
    const weft::Mesh mesh = weft::mesh_of(plan);
    weft::verify(plan, mesh);
    weft::collectives(plan, mesh);
  });
  return 0;
}
