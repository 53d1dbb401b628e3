#include "inspect/snapshot/job_streams.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "tests/support/child_process.hpp"
#include "transport/published/row_order.hpp"
#include "transport/published/row_reader.hpp"
#include "transport/published/row_sender.hpp"
#include "transport/published/version_reader.hpp"
#include "transport/published/version_writer.hpp"

namespace weft::job_streams_test {
namespace {

class StreamsOfAJob : public ::testing::Test {
 protected:
  ~StreamsOfAJob() override {
    PublishedMemory::remove(job_, "policy");
    RowMemory::remove(job_, "steps");
  }

  const std::string job_ = testing::unique_job();
};

TEST_F(StreamsOfAJob, AreEmptyWithoutAJob) {
  const JobStreams streams = read_job_streams(job_);
  EXPECT_TRUE(streams.versions.empty() && streams.rows.empty() && streams.unreadable.empty());
}

TEST_F(StreamsOfAJob, NameTheProcessesThatHoldVersions) {
  PublishedMemory memory = PublishedMemory::create(
      job_, "policy", lay_out({{.name = "a", .type = {DType::f32, {2}}}}), 1);
  VersionWriter writer(memory, 0);
  const auto publish = [&](std::uint64_t publication, std::uint64_t version) {
    writer.decide(publication, version);
    std::memset(writer.destination(publication, version), 0, memory.version_bytes());
    writer.copied(publication);
    ASSERT_TRUE(writer.publish(publication, version));
  };
  VersionReader reader(job_, "policy");
  EXPECT_FALSE(read_job_streams(job_).versions.at(0).newest);
  publish(1, 203);
  const auto held = reader.hold_newest();
  ASSERT_TRUE(held);
  publish(2, 204);
  JobStreams streams = read_job_streams(job_);
  ASSERT_EQ(streams.versions.size(), 1U);
  EXPECT_EQ(streams.versions[0].name, "policy");
  EXPECT_EQ(streams.versions[0].newest, 204U);
  EXPECT_EQ(streams.versions[0].held_by(::getpid()), 203U);
  EXPECT_FALSE(streams.versions[0].held_by(::getpid() + 1));
  reader.release(held->place);
  EXPECT_FALSE(read_job_streams(job_).versions.at(0).held_by(::getpid()));
}

TEST_F(StreamsOfAJob, CountTheRowsOfAStepAndNameTheirWriters) {
  RowMemory memory = RowMemory::create(
      job_, "steps",
      {.fields = lay_out({{.name = "a", .type = {DType::f32, {2}}}}, kRowAlignment),
       .capacity = 64});
  memory.header().base = 0;
  RowSender sender(job_, "steps");
  EXPECT_EQ(read_job_streams(job_).rows.at(0).writers.at(0).sent_ns, 0);
  sender.send(*sender.take(7), 7, 0);
  RowOrder order(memory);
  memory.header().wanted = 8;
  order.take();
  const JobStreams streams = read_job_streams(job_);
  ASSERT_EQ(streams.rows.size(), 1U);
  RowStream stream = streams.rows[0];
  EXPECT_EQ(stream.rows, 7U);
  EXPECT_EQ(stream.rows_text(0), "7 rows");
  ASSERT_EQ(stream.writers.size(), 1U);
  EXPECT_EQ(stream.writers[0].pid, ::getpid());
  EXPECT_GT(stream.writers[0].sent_ns, 0);
  EXPECT_LE(stream.writers[0].sent_ns, streams.at_ns);
  stream.batch_rows = 4;
  stream.used = {4};
  EXPECT_EQ(stream.rows_text(0), "3 of 4 rows");
  EXPECT_EQ(streams.rows_of("packed(experience(steps))"), streams.rows.data());
  EXPECT_EQ(streams.rows_of("experience(other)"), nullptr);
}

TEST_F(StreamsOfAJob, SayWhyTheyCantBeRead) {
  RowMemory memory = RowMemory::create(
      job_, "steps",
      {.fields = lay_out({{.name = "a", .type = {DType::f32, {2}}}}, kRowAlignment),
       .capacity = 1});
  memory.header().format = 99;
  const JobStreams streams = read_job_streams(job_);
  EXPECT_TRUE(streams.rows.empty());
  ASSERT_EQ(streams.unreadable.size(), 1U);
  EXPECT_NE(streams.unreadable[0].find("version 99"), std::string::npos) << streams.unreadable[0];
}

}  // namespace
}  // namespace weft::job_streams_test
