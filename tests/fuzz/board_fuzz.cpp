/// Reads the fuzz input as the whole segment of a board, as `weft inspect` and the trainer do.

#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/planted.hpp"
#include "transport/board/board.hpp"

namespace weft {
namespace {

void read(const Board& board) {
  const BoardHeader& header = board.header();
  WEFT_CHECK(header.mesh_shape.size() == header.axis_names.size());
  WEFT_CHECK(header.name.size() <= 256 && header.run_dir.size() <= 1024);
  for (const ActorRow& row : board.readable_rows()) {
    WEFT_CHECK(row.worker < header.num_workers && row.chip < header.num_chips);
    WEFT_CHECK(row.waiting_for < header.num_chips);
    WEFT_CHECK(to_string(row.kind) != "unknown" && to_string(row.state) != "unknown");
    // A text may be four times as long as its bytes in the row, because a byte that isn't UTF-8 is
    // read as "\x9b".
    WEFT_CHECK(row.last_error.size() <= 4 * 256 && row.last_message.size() <= 4 * 96);
  }
  for (int i = 0; i < board.num_rows(); ++i) read_or_refuse({}, [&](auto) { board.read(i); });
  read_or_refuse({}, [&](auto) { WEFT_CHECK(to_string(board.status()) != "unknown"); });
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string job = weft::testing::planted_job();
  const weft::testing::Planted planted(weft::Board::segment_name(job),
                                       std::as_bytes(std::span(data, size)));
  weft::read_or_refuse_segment([&] { weft::read(weft::Board::open(job, true)); });
  return 0;
}
