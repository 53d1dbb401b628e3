#include "transport/format/checkpoint_manifest.hpp"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/golden.hpp"
#include "tests/unit/transport/format/damage.hpp"

namespace weft::checkpoint_manifest_test {
namespace {

using testing::AlignedCopy;
using testing::expect_golden;
using testing::read_golden;

CheckpointManifest sample_manifest() {
  const auto half = [](std::int64_t begin, std::uint32_t file, std::uint64_t at) {
    return StoredShard{.offsets = {begin, 0},
                       .dims = {2, 3},
                       .file = file,
                       .file_offset = at,
                       .frame_bytes = 280,
                       .payload_xxh3 = 0x0123456789abcdefULL + at};
  };
  return {.step = 640,
          .mesh_shape = {2, 1},
          .axis_names = {"data", "model"},
          .files = {"worker-0.shards", "worker-1.shards"},
          .tensors = {{.name = "fc1.weight",
                       .type = {DType::f32, {4, 3}},
                       .shards = {half(0, 0, 0), half(2, 1, 64)}},
                      {.name = "lr",
                       .type = {DType::f64, {}},
                       .shards = {{.file = 0, .file_offset = 320, .frame_bytes = 200}}}}};
}

void expect_unwritable(const CheckpointManifest& manifest, std::string_view why) {
  testing::expect_error(Errc::invalid_argument, {why}, [&] { encode_manifest(manifest); });
}

CheckpointManifest decode(std::span<const std::byte> bytes) { return decode_manifest(bytes); }

TEST(CheckpointManifest, ReadsWhatWasWritten) {
  EXPECT_EQ(decode_manifest(encode_manifest(sample_manifest())), sample_manifest());
}

TEST(CheckpointManifest, KeepsTheHostsOfTheMesh) {
  CheckpointManifest manifest = sample_manifest();
  manifest.mesh_shape = {12, 1};
  manifest.dcn_shape = {2, 1};
  manifest.save_id = "93ef-1-640";
  manifest.tensors[0].sharding = Sharding::closed();
  const CheckpointManifest read = decode_manifest(encode_manifest(manifest));
  EXPECT_EQ(read, manifest);
  EXPECT_EQ(read.mesh(), Mesh({12, 1}, {"data", "model"}, {}, {2, 1}));
  manifest.dcn_shape = {5, 1};
  expect_unwritable(manifest, "hosts[0] is 5");
}

TEST(CheckpointManifest, BytesAreThoseOfVersionOne) {
  expect_golden("manifest-v1.bin", as_text(encode_manifest(sample_manifest())));
}

TEST(CheckpointManifest, ReadsVersionOne) {
  const std::string golden = read_golden("manifest-v1.bin");
  EXPECT_EQ(decode_manifest(AlignedCopy(std::as_bytes(std::span(golden))).bytes()),
            sample_manifest());
}

TEST(CheckpointManifest, RefusesEveryTruncation) {
  expect_truncations_refused(encode_manifest(sample_manifest()), decode);
}

TEST(CheckpointManifest, RefusesEveryFlippedBit) {
  expect_bit_flips_refused(encode_manifest(sample_manifest()), decode);
}

TEST(CheckpointManifest, DamageBehindTheSealIsRefusedOrInRange) {
  const int refused = flip_behind_the_seal(
      kManifestFormat, encode_manifest(sample_manifest()), decode,
      [](const CheckpointManifest& manifest) { EXPECT_NO_THROW(encode_manifest(manifest)); });
  EXPECT_GT(refused, 0);
}

TEST(CheckpointManifest, KeepsCommandsInTheirOrder) {
  CheckpointManifest manifest = sample_manifest();
  manifest.commands = {
      {.number = 2, .step = 600, .name = "rate", .payload = "0.5", .is_read = true},
      {.number = 3, .step = 640, .name = "save", .payload = "null", .is_read = true},
      {.number = 4, .step = 641, .name = "end", .payload = "{}"}};
  EXPECT_EQ(decode_manifest(encode_manifest(manifest)), manifest);
  const int refused = flip_behind_the_seal(
      kManifestFormat, encode_manifest(manifest), decode,
      [](const CheckpointManifest& damaged) { EXPECT_NO_THROW(encode_manifest(damaged)); });
  EXPECT_GT(refused, 0);
  std::swap(manifest.commands[0], manifest.commands[1]);
  expect_unwritable(manifest, "the commands 'save' and 'rate' are not in order");
}

TEST(CheckpointManifest, RefusesBytesAfterItsEnd) {
  auto bytes = encode_manifest(sample_manifest());
  bytes.push_back(std::byte{0});
  testing::expect_error(Errc::corrupt, {"1 bytes after its end"}, [&] { decode_manifest(bytes); });
}

TEST(CheckpointManifest, RefusesShardsThatMissElements) {
  CheckpointManifest manifest = sample_manifest();
  manifest.tensors[0].shards.pop_back();
  expect_unwritable(manifest, "6 of its elements are in no shard");
}

TEST(CheckpointManifest, RefusesShardsThatOverlap) {
  CheckpointManifest manifest = sample_manifest();
  manifest.tensors[0].shards[1].offsets = {1, 0};
  expect_unwritable(manifest, "overlap");
}

TEST(CheckpointManifest, RefusesAShardOutsideItsTensor) {
  CheckpointManifest manifest = sample_manifest();
  manifest.tensors[0].shards[1].offsets = {3, 0};
  expect_unwritable(manifest, "doesn't fit in dim 0");
}

TEST(CheckpointManifest, RefusesATensorNamedTwice) {
  CheckpointManifest manifest = sample_manifest();
  manifest.tensors[1].name = manifest.tensors[0].name;
  expect_unwritable(manifest, "twice");
}

TEST(CheckpointManifest, RefusesFilesOutsideItsFolder) {
  for (const std::string name : {"", ".", "..", "../secret", "/etc/passwd", "a/b"}) {
    SCOPED_TRACE(name);
    CheckpointManifest manifest = sample_manifest();
    manifest.files[1] = name;
    expect_unwritable(manifest, "plain file name");
  }
}

TEST(CheckpointManifest, RefusesAFileThatIsNotListed) {
  CheckpointManifest manifest = sample_manifest();
  manifest.tensors[0].shards[0].file = 2;
  expect_unwritable(manifest, "file 2 of 2");
}

TEST(CheckpointManifest, RefusesAFrameThatIsMisplacedOrTooSmall) {
  CheckpointManifest manifest = sample_manifest();
  manifest.tensors[0].shards[0].file_offset = 32;
  expect_unwritable(manifest, "frame of 280 bytes at 32");
  manifest = sample_manifest();
  manifest.tensors[0].shards[0].frame_bytes = 23;
  expect_unwritable(manifest, "frame of 23 bytes");
}

/// The table of a part may lack elements of a tensor, but a manifest may not. A reader of one must
/// refuse the other.
TEST(CheckpointManifest, APartTableHasTheShardsOfOnePart) {
  CheckpointManifest table = sample_manifest();
  for (StoredTensor& tensor : table.tensors) {
    if (tensor.shards.size() > 1) tensor.shards.pop_back();
  }
  EXPECT_NE(table, sample_manifest());
  const auto bytes = encode_manifest(table, kPartTableFormat);
  EXPECT_EQ(decode_manifest(bytes, kPartTableFormat), table);
  EXPECT_THROW(decode_manifest(bytes), Error);
  EXPECT_THROW(encode_manifest(table), Error);
  EXPECT_THROW(decode_manifest(encode_manifest(sample_manifest()), kPartTableFormat), Error);
}

}  // namespace
}  // namespace weft::checkpoint_manifest_test
