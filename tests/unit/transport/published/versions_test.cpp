#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "transport/published/version_reader.hpp"
#include "transport/published/version_writer.hpp"

namespace weft::versions_test {
namespace {

using testing::expect_error;
using testing::unique_job;

const std::vector<PublishedTensor> kTensors =
    lay_out({{.name = "a.weight", .type = {DType::f32, {3, 5}}},
             {.name = "a.bias", .type = {DType::i64, {}}},
             {.name = "none", .type = {DType::u8, {0}}}});

/// A job with one worker, which publishes kTensors as "policy".
class Versions : public ::testing::Test {
 protected:
  ~Versions() override { PublishedMemory::remove(job_, "policy"); }

  /// Publishes a version whose bytes are all `paint`. Returns false if the version is skipped.
  bool publish(std::uint64_t version, int paint) {
    writer_.decide(++publication_, version);
    std::byte* const place = writer_.destination(publication_, version);
    if (place == nullptr) return false;
    std::memset(place, paint, memory_.version_bytes());
    writer_.copied(publication_);
    return writer_.publish(publication_, version);
  }
  static int paint_of(const VersionReader& reader, const VersionReader::Held& held) {
    return static_cast<int>(reader.memory().place(held.place)[7]);
  }

  std::string job_ = unique_job();
  PublishedMemory memory_ = PublishedMemory::create(job_, "policy", kTensors, 1);
  VersionWriter writer_{memory_, 0};
  std::uint64_t publication_ = 0;
};

TEST_F(Versions, AreReadWithTheirTensors) {
  VersionReader reader(job_, "policy");
  EXPECT_EQ(reader.memory().tensors(), kTensors);
  EXPECT_FALSE(reader.newest());
  EXPECT_FALSE(reader.hold_newest());
  ASSERT_TRUE(publish(0, 1));
  ASSERT_TRUE(publish(7, 2));
  EXPECT_EQ(reader.newest(), 7U);
  const auto held = reader.hold_newest();
  ASSERT_TRUE(held);
  EXPECT_EQ(held->version, 7U);
  EXPECT_EQ(paint_of(reader, *held), 2);
  EXPECT_EQ(PublishedMemory::names(job_), std::vector<std::string>{"policy"});
}

TEST_F(Versions, DontChangeWhileTheyAreHeld) {
  VersionReader reader(job_, "policy");
  std::vector<VersionReader::Held> held;
  for (int version = 0; version < 7; ++version) {
    ASSERT_TRUE(publish(static_cast<std::uint64_t>(version), version));
    held.push_back(*reader.hold_newest());
  }
  ASSERT_TRUE(publish(7, 7));
  held.push_back(*reader.hold_newest());
  EXPECT_FALSE(publish(8, 8));
  EXPECT_EQ(memory_.header().skipped.load(), 1U);
  EXPECT_EQ(reader.newest(), 7U);
  for (int version = 0; version < 8; ++version) {
    EXPECT_EQ(paint_of(reader, held[static_cast<std::size_t>(version)]), version);
  }
  reader.hold_again(held[3].place);
  reader.release(held[3].place);
  EXPECT_FALSE(publish(9, 9)) << "the version is still held once";
  reader.release(held[3].place);
  EXPECT_TRUE(publish(10, 10));
  EXPECT_EQ(paint_of(reader, held[4]), 4);
}

TEST_F(Versions, TakeMemoryOnlyWhenNeeded) {
  for (std::uint64_t version = 0; version < 20; ++version) ASSERT_TRUE(publish(version, 1));
  const auto reserved = std::ranges::count_if(
      memory_.header().places, [](const PlaceRow& row) { return row.is_reserved.load() != 0; });
  EXPECT_EQ(reserved, 2);
}

TEST_F(Versions, ArePublishedOnce) {
  VersionReader reader(job_, "policy");
  ASSERT_TRUE(publish(5, 1));
  const auto held = *reader.hold_newest();
  EXPECT_FALSE(publish(4, 2));
  EXPECT_FALSE(publish(5, 2));
  EXPECT_EQ(memory_.header().skipped.load(), 0U) << "these aren't skipped for lack of a place";
  EXPECT_EQ(reader.newest(), 5U);
  EXPECT_EQ(paint_of(reader, held), 1);
  EXPECT_TRUE(publish(6, 2));
}

TEST_F(Versions, ThatADeadReaderHeldAreFree) {
  ASSERT_TRUE(publish(0, 0));
  testing::ChildProcess reader([&] {
    VersionReader its(job_, "policy");
    for (std::uint64_t version = 1; version <= 7; ++version) {
      if (!its.hold_newest() || !publish(version, 1)) throw std::runtime_error("not published");
    }
    if (publish(8, 1) || memory_.header().skipped.load() != 1) {
      throw std::runtime_error("published");
    }
    kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(reader.join(), "killed by signal 9");
  publication_ = 100;
  EXPECT_TRUE(publish(8, 1)) << "the bits of the dead reader are cleared when a place is needed";
  for (const PlaceRow& row : memory_.header().places) EXPECT_EQ(row.holders[0].load(), 0U);
}

TEST_F(Versions, OfSeveralWorkersAppearWhole) {
  const std::string job = unique_job();
  PublishedMemory memory = PublishedMemory::create(job, "policy", kTensors, 2);
  const std::shared_ptr<void> removed(nullptr,
                                      [&](void*) { PublishedMemory::remove(job, "policy"); });
  VersionWriter first(memory, 0);
  VersionWriter second(memory, 1);
  VersionReader reader(job, "policy");
  EXPECT_FALSE(second.is_decided(1));
  first.decide(1, 3);
  ASSERT_TRUE(second.is_decided(1));
  EXPECT_EQ(first.destination(1, 3), second.destination(1, 3));
  expect_error(Errc::program_divergence,
               {"worker 1 publishes version 4 where worker 0 publishes version 3"},
               [&] { second.destination(1, 4); });
  first.copied(1);
  EXPECT_FALSE(first.publish(1, 3));
  EXPECT_FALSE(reader.newest());
  second.copied(1);
  EXPECT_TRUE(first.publish(1, 3));
  EXPECT_EQ(reader.newest(), 3U);
}

TEST_F(Versions, ThatAGenerationLeftUnfinishedAreGivenUp) {
  ASSERT_TRUE(publish(1, 1));
  writer_.decide(++publication_, 2);  // the worker dies before it publishes version 2
  VersionReader reader(job_, "policy");
  EXPECT_EQ(reader.newest(), 1U);
  PublishedMemory again = PublishedMemory::open(job_, "policy", false);
  VersionWriter next(again, 0);
  for (std::uint64_t n = 1; n < 20; ++n) {
    const std::uint64_t publication = (std::uint64_t{2} << 40U) + n;
    next.decide(publication, 1 + n);
    ASSERT_NE(next.destination(publication, 1 + n), nullptr);
    next.copied(publication);
    ASSERT_TRUE(next.publish(publication, 1 + n));
  }
  EXPECT_EQ(reader.newest(), 20U);
}

TEST_F(Versions, OfADamagedLedgerAreRefused) {
  const auto entries =
      reinterpret_cast<TensorEntry*>(memory_.ledger().data() + sizeof(PublishedHeader));
  const auto expect_corrupt = [&](auto& field, auto value) {
    const auto before = std::exchange(field, value);
    expect_error(Errc::corrupt, {}, [&] { VersionReader(job_, "policy"); });
    field = before;
  };
  PublishedHeader& header = memory_.header();
  expect_corrupt(header.tensor_count, 4U);
  expect_corrupt(header.tensor_count, ~0U);
  expect_corrupt(header.name_bytes, std::uint64_t{1} << 40U);
  expect_corrupt(header.version_bytes, header.version_bytes + 64);
  expect_corrupt(header.worker_count, 0U);
  expect_corrupt(header.worker_count, 257U);
  expect_corrupt(entries[0].offset, std::uint64_t{1} << 63U);
  expect_corrupt(entries[0].offset, std::uint64_t{4});
  expect_corrupt(entries[0].dims[0], std::int64_t{-1});
  expect_corrupt(entries[0].dims[0], std::int64_t{1} << 62U);
  expect_corrupt(entries[1].rank, std::uint8_t{7});
  expect_corrupt(entries[1].dtype, std::uint8_t{10});
  expect_corrupt(entries[2].name_bytes, 1000U);
  expect_corrupt(header.magic, std::uint64_t{1});
  const auto format = std::exchange(header.format, 7U);
  expect_error(Errc::version, {"version 7"}, [&] { VersionReader(job_, "policy"); });
  header.format = format;
  header.magic = 0;
  expect_error(Errc::not_found, {"still being made"}, [&] { VersionReader(job_, "policy"); });
  expect_error(Errc::not_found, {}, [&] { VersionReader(job_, "other"); });
}

TEST_F(Versions, EndWithTheirJob) {
  EXPECT_FALSE(memory_.has_job_ended());
  PublishedMemory::remove(job_, "policy");
  EXPECT_TRUE(memory_.has_job_ended());
}

TEST(PublishedNames, ArePartsOfFileNames) {
  require_published_name("policy-2.best_1", "Publisher");
  for (const char* name : {"", ".x", "-x", "a/b", "a b"}) {
    expect_error(Errc::invalid_argument, {"Publisher: name = "},
                 [&] { require_published_name(name, "Publisher"); });
  }
  expect_error(Errc::invalid_argument, {"1 to 63 letters"},
               [&] { require_published_name(std::string(64, 'x'), "Publisher"); });
}

TEST_F(Versions, TheirBytesStay) {
  ASSERT_TRUE(publish(5, 1));
  ASSERT_TRUE(publish(7, 2));
  const VersionReader reader(job_, "policy");
  const auto held = VersionReader(job_, "policy").hold_newest();  // as a reader that has died
  ASSERT_TRUE(held);
  std::memset(memory_.header().control_root, 0, sizeof(PublishedHeader::control_root));
  EXPECT_EQ(memory_.header().reader_pids[1], ::getpid());
  for (int number : {0, 1}) memory_.header().reader_pids[number] = 4711 + number;

  std::string bytes;
  const auto add = [&](const std::byte* from, std::size_t size) {
    bytes.append(reinterpret_cast<const char*>(from), size);
  };
  const std::size_t table = sizeof(PublishedHeader) + kTensors.size() * sizeof(TensorEntry);
  add(memory_.ledger().data(), table + memory_.header().name_bytes);
  for (std::uint32_t place = 0; place < 2; ++place) add(memory_.place(place), 64);
  testing::expect_golden("versions-v2.bin", bytes);
}

}  // namespace
}  // namespace weft::versions_test
