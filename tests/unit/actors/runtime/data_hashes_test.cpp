#include "actors/runtime/data_hashes.hpp"

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"

namespace weft::data_hashes_test {
namespace {

using testing::expect_error;
using Bytes = std::vector<std::byte>;

TEST(DataHashes, AreDueInTheFirstRunsAndThenSeldom) {
  std::vector<std::uint64_t> due;
  for (std::uint64_t run = 1; run <= 100; ++run) {
    if (is_due(DataChecks::first_and_seldom, run)) due.push_back(run);
    EXPECT_TRUE(is_due(DataChecks::always, run));
    EXPECT_FALSE(is_due(DataChecks::never, run));
  }
  EXPECT_EQ(due, (std::vector<std::uint64_t>{1, 2, 4, 8, 16, 32, 50, 64, 100}));
}

TEST(DataHashes, FollowTheVariable) {
  EXPECT_EQ(data_checks(""), DataChecks::first_and_seldom);
  EXPECT_EQ(data_checks("0"), DataChecks::never);
  EXPECT_EQ(data_checks("all"), DataChecks::always);
  expect_error(Errc::invalid_argument, {"WEFT_CHECK_DATA = \"some\"", "all"},
               [] { data_checks("some"); });
}

TEST(DataHashes, SeeEveryByteUpToAMebibyte) {
  Bytes bytes(kHashedWhole);
  const std::uint64_t before = sampled_hash(bytes);
  bytes[123'456] = std::byte{1};
  EXPECT_NE(sampled_hash(bytes), before);
}

TEST(DataHashes, SeeBothEndsAndTheSizeOfWhatIsLarger) {
  Bytes bytes(5 * kHashedWhole + 3);
  const std::uint64_t before = sampled_hash(bytes);
  for (const std::size_t place : {std::size_t{0}, bytes.size() - 1}) {
    bytes[place] = std::byte{1};
    EXPECT_NE(sampled_hash(bytes), before);
    bytes[place] = std::byte{0};
  }
  EXPECT_EQ(sampled_hash(bytes), before);
  bytes.pop_back();
  EXPECT_NE(sampled_hash(bytes), before);
}

TEST(DataHashes, NameThePartOfLocalRows) {
  Program program;
  program.add_input({DType::i32, {4}}, InputKind::data, "data.0", Sharding::open(1),
                    program.intern_loc("train.cpp:7"));
  const auto rows = std::make_shared<const Bytes>(8);
  const std::vector<Binding> inputs{SourcePtr(std::make_shared<const LocalRows>(
      TensorType{DType::i32, {2}}, rows, RowParts{.held = {1}, .set = 1, .num_sets = 2}))};
  const DataHashes hashes = hash_data(program, inputs);
  EXPECT_EQ(hashes.tensors,
            (std::vector<std::string>{"part 1 of 2 of data.0 i32[4] (train.cpp:7)"}));
  EXPECT_EQ(hashes.hashes, (std::vector<std::uint64_t>{sampled_hash(*rows)}));
}

TEST(DataHashes, NameWhatComesFromTheHost) {
  Program program;
  const LocId loc = program.intern_loc("train.cpp:7");
  program.add_input({DType::f32, {2}}, InputKind::param, "w", Sharding::open(1));
  program.add_input({DType::i32, {3}}, InputKind::data, "data.0", Sharding::open(1), loc);
  const auto host = std::make_shared<const Bytes>(12);
  const std::vector<Binding> inputs{BoundBuffer(), host};
  const DataHashes hashes = hash_data(program, inputs);
  EXPECT_EQ(hashes.tensors, (std::vector<std::string>{"data.0 i32[3] (train.cpp:7)"}));
  EXPECT_EQ(hashes.hashes, (std::vector<std::uint64_t>{sampled_hash(*host)}));
}

}  // namespace
}  // namespace weft::data_hashes_test
