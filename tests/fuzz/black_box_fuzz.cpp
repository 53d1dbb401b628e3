/// Reads the fuzz input as the parts of a black box (box_parts.hpp), as `weft inspect` does.

#include "tests/fuzz/fuzz.hpp"
#include "tests/support/box_parts.hpp"
#include "transport/blackbox/black_box.hpp"

namespace weft {
namespace {

void read(const BlackBox& box) {
  WEFT_CHECK(box.num_workers() <= box_format::kWorkerCountMax);
  WEFT_CHECK(box.job().size() <= 4 * 64 && box.host().size() <= 4 * 64);
  for (const RingId ring : box.rings()) {
    for (const Event& event : box.events(ring)) {
      WEFT_CHECK(to_string(event.kind) != "unknown");
      WEFT_CHECK(event.peer >= -1 && event.peer < 0xffff);
      WEFT_CHECK(event.text.size() <= 4 * std::size_t{box_format::kTextBytes});
      box.scale().realtime_ns(event.at_ns);
    }
    box.written(ring);
    if (ring.kind != RingKind::chip) continue;
    box.position(ring.owner);
    box.ledger(ring.owner);
    box.waited_for_ns(ring.owner);
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::byte> box =
      weft::testing::scatter_box(std::as_bytes(std::span(data, size)));
  weft::read_or_refuse_segment([&] { weft::read(weft::BlackBox::from_bytes(box)); });
  return 0;
}
