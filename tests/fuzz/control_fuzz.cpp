/// Reads the fuzz input as the control segment of a job whose only arena has the smallest size.

#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/planted.hpp"
#include "transport/collectives/call_record.hpp"
#include "transport/job/control_format.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/state/commits.hpp"

namespace weft {
namespace {

constexpr std::size_t kArenaBytes = 2 * kArenaCapacityUnit;
constexpr std::size_t kMailboxesBytes = 2 * kMailboxBytes + kSlotRingBytes;

void use(JobMemory& memory) {
  WEFT_CHECK(memory.num_chips() == 1, memory.num_chips());
  WEFT_CHECK(memory.arena_capacity() == kArenaBytes, memory.arena_capacity());
  WEFT_CHECK(memory.aborted() || memory.abort_reason().empty());
  WEFT_CHECK(memory.abort_reason().size() <= 200);
  const Mesh mesh({1}, {"data"});
  const Mesh of_others({2, 2}, {"data", "model"});  // has the axes that a call record may name
  if (const auto call = read_record(memory.call_record(0))) to_string(*call, of_others);
  Commits(memory, mesh, 0, BoardWriter(), WaitPolicy{}).commit(common_step(memory));
  memory.abort("the end");
  WEFT_CHECK(memory.aborted());
  const std::uint32_t generation = memory.generation();
  memory.begin_generation(5);
  WEFT_CHECK(!memory.aborted() && common_step(memory) == 5);
  WEFT_CHECK(memory.generation() == generation + 1);
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weft::testing::Planted;
  if (size == 0) return 0;
  const std::string job = weft::testing::planted_job();
  const Planted control("weft-" + job + "-control", std::as_bytes(std::span(data, size)));
  const Planted arena("weft-" + job + "-chip-0", {},
                      weft::kArenaBytes + weft::kMailboxesBytes + weft::kDirectoryBytes);
  try {
    weft::JobMemory memory = weft::JobMemory::open(job);
    weft::use(memory);
  } catch (const weft::Error& error) {
    const weft::Errc code = error.code();
    WEFT_CHECK(
        code == weft::Errc::corrupt || code == weft::Errc::version || code == weft::Errc::not_found,
        error.what());
  }
  return 0;
}
