#include "transport/format/state_table.hpp"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/golden.hpp"
#include "tests/unit/transport/format/damage.hpp"
#include "tests/unit/transport/format/sample_state.hpp"

namespace weft::state_table_test {
namespace {

using testing::AlignedCopy;
using testing::expect_golden;
using testing::read_golden;

std::vector<StateEntry> decode(std::span<const std::byte> bytes) {
  return decode_state_table(bytes, sample_state_mesh()).tensors;
}

/// Encodes the sample after `spoil` has changed its first tensor, and expects that reading it fails
/// with `why`.
void expect_refused_for(std::string_view why, const std::function<void(StateEntry&)>& spoil) {
  std::vector<StateEntry> state = sample_state();
  spoil(state.front());
  testing::expect_error(Errc::corrupt, {"state table", why},
                        [&] { decode(encode_state_table(state)); });
}

TEST(StateTable, ReadsWhatWasWritten) {
  EXPECT_EQ(decode(encode_state_table(sample_state())), sample_state());
  EXPECT_EQ(decode(encode_state_table({})), std::vector<StateEntry>{});
}

TEST(StateTable, KeepsTheKindOfATensor) {
  std::vector<StateEntry> state = sample_state();
  state[1].kind = StateKind::opt_state;
  state[2].kind = StateKind::buffer;
  EXPECT_EQ(decode(encode_state_table(state)), state);
}

TEST(StateTable, KeepsTheCommandsThatTheLoopHasRead) {
  const std::vector<CommandMark> marks{{3, 40}, {4, 40}, {9, 1ULL << 60}};
  const auto bytes = encode_state_table(sample_state(), {}, marks);
  EXPECT_EQ(decode_state_table(bytes, sample_state_mesh()).commands, marks);
}

TEST(StateTable, MayBeFollowedByAnything) {
  std::vector<std::byte> bytes = encode_state_table(sample_state());
  bytes.resize(bytes.size() + 100, std::byte{0xff});
  EXPECT_EQ(decode(bytes), sample_state());
}

TEST(StateTable, BytesAreThoseOfVersionOne) {
  expect_golden("state-v1.bin", as_text(encode_state_table(sample_state())));
}

TEST(StateTable, ReadsVersionOne) {
  const std::string golden = read_golden("state-v1.bin");
  EXPECT_EQ(decode(AlignedCopy(std::as_bytes(std::span(golden))).bytes()), sample_state());
}

TEST(StateTable, RefusesEveryTruncation) {
  expect_truncations_refused(encode_state_table(sample_state()), decode);
}

TEST(StateTable, RefusesEveryFlippedBit) {
  expect_bit_flips_refused(encode_state_table(sample_state()), decode);
}

TEST(StateTable, DamageBehindTheSealIsRefusedOrInRange) {
  const auto accepted = [](const std::vector<StateEntry>& state) {
    EXPECT_EQ(decode(encode_state_table(state)), state);
  };
  const int refused =
      flip_behind_the_seal(kStateTableFormat, encode_state_table(sample_state()), decode, accepted);
  EXPECT_GT(refused, 0);
}

TEST(StateTable, RefusesWhatIsOutOfRange) {
  expect_refused_for("dtype 10", [](StateEntry& e) { e.type.dtype = DType(10); });
  expect_refused_for("2^53", [](StateEntry& e) { e.type.shape[0] = std::int64_t{1} << 52; });
  expect_refused_for("atom 3 of 2", [](StateEntry& e) { e.sharding.dims[0] = AtomList{3}; });
  expect_refused_for("atom 0 of 2",
                     [](StateEntry& e) { e.sharding.dims[0] = AtomList::from_bits(0x10); });
  expect_refused_for("an atom twice", [](StateEntry& e) { e.sharding.dims[1] = AtomList{2, 2}; });
  expect_refused_for("an atom twice", [](StateEntry& e) { e.sharding.dims[0] = AtomList{1, 2}; });
  expect_refused_for("masks", [](StateEntry& e) { e.sharding.replicated = 8; });
  expect_refused_for("reduction 3", [](StateEntry& e) { e.sharding.reduce_kind = ReduceKind(3); });
}

TEST(StateTable, NamesTheVersionThatItCantRead) {
  std::vector<std::byte> bytes = encode_state_table(sample_state());
  bytes[8] = std::byte{2};
  testing::expect_error(Errc::version, {"state table", "version 2"}, [&] { decode(bytes); });
}

}  // namespace
}  // namespace weft::state_table_test
