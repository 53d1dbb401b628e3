#include "transport/format/run_card.hpp"

#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "tests/support/golden.hpp"
#include "tests/unit/transport/format/damage.hpp"

namespace weft::run_card_test {
namespace {

using testing::AlignedCopy;
using testing::expect_golden;
using testing::read_golden;

RunCard sample_card() {
  return {.mesh = Mesh({2, 2}, {"data", "model"}, {0, 2, 1, 3}),
          .num_workers = 2,
          .seed = 7,
          .begin_step = 640,
          .checkpoints = "/runs/gpt/checkpoints",
          .keep_for_rescue_s = 3600,
          .fit_number = 3};
}

void expect_unwritable(std::string_view why, const std::function<void(RunCard&)>& spoil) {
  RunCard card = sample_card();
  spoil(card);
  testing::expect_error(Errc::invalid_argument, {"run card", why}, [&] { encode_run_card(card); });
}

TEST(RunCard, ReadsWhatWasWritten) {
  EXPECT_EQ(decode_run_card(encode_run_card(sample_card())), sample_card());
}

TEST(RunCard, KeepsTheHostsOfTheMesh) {
  RunCard card = sample_card();
  card.mesh = HybridMesh{{3, 2}, {2, 1}, {"data", "model"}}.mesh();
  card.num_workers = 4;
  EXPECT_EQ(decode_run_card(encode_run_card(card)), card);
  card.job = "0123456789abcdef0123456789abcdef";
  card.host = 1;
  card.num_hosts = 2;
  card.has_copies = true;
  EXPECT_EQ(decode_run_card(encode_run_card(card)), card);
  expect_bit_flips_refused(encode_run_card(card), decode_run_card);
}

TEST(RunCard, BytesAreThoseOfVersionOne) {
  expect_golden("run-card-v1.bin", as_text(encode_run_card(sample_card())));
}

TEST(RunCard, ReadsVersionOne) {
  const std::string golden = read_golden("run-card-v1.bin");
  EXPECT_EQ(decode_run_card(AlignedCopy(std::as_bytes(std::span(golden))).bytes()), sample_card());
}

TEST(RunCard, RefusesEveryTruncationAndEveryFlippedBit) {
  expect_truncations_refused(encode_run_card(sample_card()), decode_run_card);
  expect_bit_flips_refused(encode_run_card(sample_card()), decode_run_card);
}

TEST(RunCard, DamageBehindTheSealIsRefusedOrInRange) {
  const int refused =
      flip_behind_the_seal(kRunCardFormat, encode_run_card(sample_card()), decode_run_card,
                           [](const RunCard& card) { EXPECT_NO_THROW(encode_run_card(card)); });
  EXPECT_GT(refused, 0);
}

TEST(RunCard, RefusesWhatNoJobHas) {
  expect_unwritable("3 workers with 4 chips", [](RunCard& card) { card.num_workers = 3; });
  expect_unwritable("0 workers", [](RunCard& card) { card.num_workers = 0; });
  expect_unwritable("absolute path", [](RunCard& card) { card.checkpoints = "saved"; });
  expect_unwritable("keep_for_rescue_s = -1", [](RunCard& card) { card.keep_for_rescue_s = -1; });
  expect_unwritable("keep_for_rescue_s = inf", [](RunCard& card) {
    card.keep_for_rescue_s = std::numeric_limits<double>::infinity();
  });
  expect_unwritable("fit_number = 0", [](RunCard& card) { card.fit_number = 0; });
  expect_unwritable("host 1 of 1", [](RunCard& card) { card.host = 1; });
  expect_unwritable("host 0 of 0", [](RunCard& card) { card.num_hosts = 0; });
  expect_unwritable("job = \"../x\": expected hex digits",
                    [](RunCard& card) { card.job = "../x"; });
  expect_unwritable("job \"ab\" has 2 hosts, 2 workers and a mesh with 4 chips per host",
                    [](RunCard& card) {
                      card.job = "ab";
                      card.num_hosts = 2;
                    });
}

}  // namespace
}  // namespace weft::run_card_test
