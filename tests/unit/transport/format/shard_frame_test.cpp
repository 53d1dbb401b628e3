#include "transport/format/shard_frame.hpp"

#include <cstring>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/golden.hpp"
#include "tests/unit/transport/format/damage.hpp"

namespace weft::shard_frame_test {
namespace {

using testing::AlignedCopy;
using testing::expect_golden;
using testing::read_golden;

ShardHeader sample_header() {
  return {.name = "fc1.weight",
          .type = {DType::f32, {4, 6}},
          .offsets = {2, 3},
          .dims = {2, 3},
          .mesh_coords = {1, 1},
          .step = 640,
          .version = 641};
}

std::vector<std::byte> sample_payload() {
  const std::array<float, 6> elements{1, -2, 3.5, 0, 1e-30F, 6};
  const auto bytes = std::as_bytes(std::span(elements));
  return {bytes.begin(), bytes.end()};
}

AlignedCopy frame_of(const ShardHeader& header, std::span<const std::byte> payload) {
  AlignedCopy frame(std::vector<std::byte>(shard_layout(header).frame_bytes));
  write_shard_frame(header, payload, frame.bytes());
  return frame;
}

AlignedCopy sample_frame() { return frame_of(sample_header(), sample_payload()); }

bool fits(const ShardHeader& header) {
  for (int d = 0; d < header.dims.size(); ++d) {
    if (header.offsets[d] + header.dims[d] > header.type.shape[d]) return false;
  }
  return header.dims.size() == header.type.shape.size();
}

TEST(ShardFrame, ReadsWhatWasWritten) {
  const AlignedCopy frame = sample_frame();
  const ShardView view = read_shard_frame(frame.bytes());
  EXPECT_EQ(view.header, sample_header());
  EXPECT_EQ(as_text(view.payload), as_text(sample_payload()));
  EXPECT_EQ(view.frame_bytes, frame.bytes().size());
  EXPECT_EQ(view.payload_xxh3, xxh3(sample_payload()));
}

TEST(ShardFrame, PayloadIsAlignedAndInPlace) {
  const AlignedCopy frame = sample_frame();
  const ShardLayout layout = shard_layout(sample_header());
  const ShardView view = read_shard_frame(frame.bytes());
  EXPECT_EQ(layout.payload_offset % kShardAlignment, 0U);
  EXPECT_EQ(view.payload.data(), frame.bytes().data() + layout.payload_offset);
  EXPECT_EQ(view.payload.size(), layout.payload_bytes);
}

TEST(ShardFrame, SealsAPayloadThatAlreadyStandsThere) {
  const ShardLayout layout = shard_layout(sample_header());
  const AlignedCopy frame(std::vector<std::byte>(layout.frame_bytes, std::byte{0xff}));
  const auto payload = sample_payload();
  std::memcpy(frame.bytes().data() + layout.payload_offset, payload.data(), payload.size());
  seal_shard_frame(sample_header(), frame.bytes());
  EXPECT_EQ(as_text(frame.bytes()), as_text(sample_frame().bytes()));
}

TEST(ShardFrame, HoldsScalarsAndEmptyShards) {
  const ShardHeader scalar{.name = "lr", .type = {DType::i64, {}}, .mesh_coords = {}};
  const auto eight = std::vector<std::byte>(8, std::byte{7});
  EXPECT_EQ(read_shard_frame(frame_of(scalar, eight).bytes()).header, scalar);

  const ShardHeader empty{.name = "none",
                          .type = {DType::bf16, {0, 8}},
                          .offsets = {0, 4},
                          .dims = {0, 4},
                          .mesh_coords = {0}};
  EXPECT_EQ(read_shard_frame(frame_of(empty, {}).bytes()).header, empty);
}

TEST(ShardFrame, ReadsAFrameThatIsFollowedByAnother) {
  const ShardLayout layout = shard_layout(sample_header());
  std::vector<std::byte> two(1024, std::byte{0xee});
  std::ranges::copy(sample_frame().bytes(), two.begin());
  EXPECT_EQ(read_shard_frame(AlignedCopy(two).bytes()).frame_bytes, layout.frame_bytes);
}

TEST(ShardFrame, BytesAreThoseOfVersionOne) {
  expect_golden("shard-v1.bin", as_text(sample_frame().bytes()));
}

TEST(ShardFrame, ReadsVersionOne) {
  const std::string golden = read_golden("shard-v1.bin");
  const AlignedCopy frame(std::as_bytes(std::span(golden)));
  EXPECT_EQ(read_shard_frame(frame.bytes()).header, sample_header());
}

TEST(ShardFrame, RefusesAnotherVersion) {
  const AlignedCopy frame = sample_frame();
  frame.bytes()[8] = std::byte{2};
  testing::expect_error(Errc::version, {"version 2"}, [&] { read_shard_frame(frame.bytes()); });
}

TEST(ShardFrame, RefusesEveryTruncation) {
  expect_truncations_refused(sample_frame().bytes(), read_shard_frame);
}

TEST(ShardFrame, RefusesEveryFlippedBit) {
  expect_bit_flips_refused(sample_frame().bytes(), read_shard_frame);
}

TEST(ShardFrame, DamageBehindTheSealIsRefusedOrInRange) {
  const AlignedCopy frame = sample_frame();
  const int refused = flip_behind_the_seal(
      kShardFormat, frame.bytes(), read_shard_frame, [&](const ShardView& view) {
        EXPECT_TRUE(fits(view.header));
        EXPECT_EQ(as_text(view.payload), as_text(sample_payload()));
      });
  EXPECT_GT(refused, 0);
}

TEST(ShardFrame, IsViewedInPlaceWithoutALookAtItsPayload) {
  const AlignedCopy frame = sample_frame();
  const std::size_t payload_offset = shard_layout(sample_header()).payload_offset;
  frame.bytes()[payload_offset] ^= std::byte{1};
  const ShardView view = view_shard_frame(frame.bytes());
  EXPECT_EQ(view.header, sample_header());
  EXPECT_EQ(view.payload.data(), frame.bytes().data() + payload_offset);
  EXPECT_EQ(view.frame_bytes, frame.bytes().size());
  testing::expect_error(Errc::corrupt, {"checksum"}, [&] { read_shard_frame(frame.bytes()); });
}

TEST(ShardFrame, IsViewedOnlyWhereAllButItsPayloadIsSound) {
  expect_truncations_refused(sample_frame().bytes(), view_shard_frame);
  const AlignedCopy frame = sample_frame();
  for (std::size_t bit = 0; bit < 8 * shard_layout(sample_header()).payload_offset; ++bit) {
    SCOPED_TRACE(bit);
    frame.bytes()[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_THROW(view_shard_frame(frame.bytes()), Error);
    frame.bytes()[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(ShardFrame, RefusesToWriteAShardThatLeavesItsTensor) {
  ShardHeader header = sample_header();
  header.offsets = {3, 3};
  testing::expect_error(Errc::invalid_argument, {"size 2 at 3", "dim 0"},
                        [&] { shard_layout(header); });
  header = sample_header();
  header.dims = {2};
  testing::expect_error(Errc::invalid_argument, {"1 dims"}, [&] { shard_layout(header); });
}

TEST(ShardFrame, RefusesToWriteAPayloadOfAnotherSize) {
  std::vector<std::byte> room(shard_layout(sample_header()).frame_bytes);
  const AlignedCopy frame(room);
  auto payload = sample_payload();
  payload.pop_back();
  testing::expect_error(Errc::invalid_argument, {"the payload has 23 bytes", "says 24"},
                        [&] { write_shard_frame(sample_header(), payload, frame.bytes()); });
  testing::expect_error(Errc::invalid_argument, {"the buffer has 64 bytes"}, [&] {
    write_shard_frame(sample_header(), sample_payload(), frame.bytes().first(64));
  });
}

TEST(ShardFrame, RefusesBytesThatBeginAnywhere) {
  std::vector<std::byte> shifted(1024);
  const AlignedCopy copy(shifted);
  testing::expect_error(Errc::invalid_argument, {"multiple of 64"},
                        [&] { read_shard_frame(copy.bytes().subspan(8)); });
}

}  // namespace
}  // namespace weft::shard_frame_test
