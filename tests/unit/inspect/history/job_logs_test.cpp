#include "inspect/history/job_logs.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>

#include <nlohmann/json.hpp>

#include "tests/property/seeds.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/inspect/history/made_events.hpp"

namespace weft::job_logs_test {
namespace {

using testing::MadeEvents;
using testing::MadeJob;
using testing::TemporaryFolder;

class RunFolderOfLogs : public TemporaryFolder {
 public:
  void add(const std::string& name, const std::string& text) const {
    std::ofstream(path() + "/" + name, std::ios::app) << text;
  }
  JobLogs logs() const { return {find_log_files(path()), {}}; }
};

std::string line(int second, const std::string& text, const std::string& level = "info") {
  return fmt::format("2026-11-24T23:57:{:02}.000000+00:00 {} weft.worker [worker 0 step 4] {}\n",
                     second, level, text);
}

/// Returns the texts of all entries, one per line.
std::string texts_of(JobLogs logs) {
  std::string texts;
  while (const auto entry = logs.next()) texts += entry->text + "\n";
  return texts;
}

TEST(LogEntry, IsReadFromALine) {
  const auto entry = parse_log_line(
      "2026-11-24T23:57:58.138178+01:00 warning weft.trainer [worker 3 step 204] a [b] text", 3);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->unix_ns, 1'795'561'078'138'178'000);
  EXPECT_EQ(entry->worker, 3);
  EXPECT_EQ(log_level_name(entry->level), "warn");
  EXPECT_EQ(entry->logger, "weft.trainer");
  EXPECT_EQ(entry->step, 204U);
  EXPECT_EQ(entry->text, "a [b] text");
}

TEST(LogEntry, BeginsWithATime) {
  for (const char* other :
       {"", "text", "2026-11-24", "2026-11-24T23:57:58.138178", "2026-11-24T23:57:58.138178+01:0x",
        "2026-11-24T23:57:58,138178+01:00 info a [b step 1] c", "9999-11-24T23:57:58.138178+01:00",
        "  2026-11-24T23:57:58.138178+01:00 info a [b step 1] c"}) {
    EXPECT_FALSE(parse_log_line(other, 0)) << other;
  }
}

TEST(LogEntry, KeepsAsTextWhatItCantRead) {
  for (const char* text : {"", "text", "loud weft.worker [worker 0 step 1] a",
                           "info weft.worker [worker 0 step] a", "info weft.worker [] a", "info"}) {
    const auto entry = parse_log_line(std::string("2026-11-24T23:57:58.138178+01:00 ") + text, 0);
    ASSERT_TRUE(entry) << text;
    EXPECT_EQ(entry->text, text);
    EXPECT_EQ(log_level_name(entry->level), "info");
  }
}

TEST(LogEntry, IsShownInLocalTimeAndWithoutControlCharacters) {
  ::setenv("TZ", "UTC-2", 1);
  ::tzset();
  const LogEntry entry{.unix_ns = 1'795'561'078'138'178'000,
                       .worker = 3,
                       .level = 3,
                       .step = 204,
                       .text = "a\x1b[2J\n2026 b\n"};
  EXPECT_EQ(log_text(entry, false),
            "2026-11-25 00:57:58.138  warn      worker 3    step 204     a\\x1b[2J\n"
            "    2026 b\n");
  EXPECT_TRUE(log_text(entry, true).starts_with("\x1b[33m2026-11-25"));
  EXPECT_TRUE(log_text(entry, true).ends_with("b\x1b[0m\n"));
  ::unsetenv("TZ");
  ::tzset();
  EXPECT_TRUE(log_text({.text = "x"}, true).starts_with("-   "));
}

TEST(LogEntry, IsOneLineOfJson) {
  const std::string text = log_json({.worker = 1, .level = 4, .text = "a\n\"b\"\xff"});
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json.at("schema"), "weft.logs/1");
  EXPECT_EQ(json.at("level"), "error");
  EXPECT_EQ(json.at("worker"), 1);
  EXPECT_EQ(json.at("from"), "file");
}

TEST(JobLogs, AreMergedByTime) {
  const RunFolderOfLogs folder;
  folder.add("worker-10.log", line(3, "d") + line(5, "f"));
  folder.add("worker-2.log", line(2, "b") + line(3, "c") + line(9, "g"));
  folder.add("trainer.log", line(1, "a") + line(4, "e"));
  folder.add("worker-x.log", line(0, "no log of a worker"));
  folder.add("program.log", line(0, "nor this"));
  EXPECT_EQ(texts_of(folder.logs()), "a\nb\nc\nd\ne\nf\ng\n");
}

/// Threads of one process may write lines in another order than that of the lines' times.
TEST(JobLogs, KeepTheOrderOfAFile) {
  const RunFolderOfLogs folder;
  folder.add("worker-0.log", line(5, "a") + line(4, "b") + line(8, "d"));
  folder.add("worker-1.log", line(6, "c"));
  EXPECT_EQ(texts_of(folder.logs()), "a\nb\nc\nd\n");
}

TEST(JobLogs, KeepFurtherLinesWithTheirRecord) {
  const RunFolderOfLogs folder;
  folder.add("worker-0.log", "before\n" + line(2, "b") + "stack\n\n" + line(4, "d") + "unfinished");
  folder.add("worker-1.log", line(3, "c"));
  EXPECT_EQ(texts_of(folder.logs()), "before\nb\nstack\n\nc\nd\nunfinished\n");
}

TEST(JobLogs, CutWhatIsTooLong) {
  const RunFolderOfLogs folder;
  std::string lines = line(1, std::string(3 * LogFile::kLineBytesMax, 'x'));
  for (int i = 0; i < 100; ++i) lines += std::string(LogFile::kTextBytesMax / 50, 'y') + "\n";
  folder.add("worker-0.log", lines + line(2, "next"));
  JobLogs logs = folder.logs();
  const auto first = logs.next();
  ASSERT_TRUE(first);
  EXPECT_LE(first->text.size(), LogFile::kTextBytesMax + LogFile::kLineBytesMax);
  EXPECT_TRUE(first->text.ends_with("\n(cut)"));
  const auto second = logs.next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->text, "next");
}

/// Lines without a time and half-written lines are shown as harmless text, whatever bytes they
/// have.
TEST(JobLogs, TakeAnyBytes) {
  for (const std::uint64_t seed : testing::seeds(100)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::string bytes;
    for (int piece = 0; piece < 50; ++piece) {
      const std::string record = line(piece, "text", random() % 2 == 0 ? "warning" : "loud");
      bytes += record.substr(0, random() % (record.size() + 1));
      for (std::uint64_t i = random() % 20; i > 0; --i) bytes += static_cast<char>(random());
    }
    const RunFolderOfLogs folder;
    folder.add("worker-0.log", bytes);
    JobLogs logs = folder.logs();
    std::size_t lines = 0;
    while (const auto entry = logs.next()) {
      const std::string shown = log_text(*entry, false);
      lines += static_cast<std::size_t>(std::ranges::count(shown, '\n'));
      EXPECT_TRUE(std::ranges::all_of(shown, [](char c) {
        return c == '\n' || static_cast<unsigned char>(c) >= 0x20;
      })) << shown;
      EXPECT_TRUE(nlohmann::json::accept(log_json(*entry)));
    }
    const auto newlines = static_cast<std::size_t>(std::ranges::count(bytes, '\n'));
    EXPECT_LE(lines, newlines + 1);
    EXPECT_GT(lines, 0U);
  }
}

TEST(JobLogs, AreFiltered) {
  const LogEntry entry{.unix_ns = 100, .worker = 2, .level = 3};
  EXPECT_TRUE(LogFilter{}.has(entry));
  EXPECT_TRUE((LogFilter{.workers = {1, 2}, .level = 3, .since_unix_ns = 100}.has(entry)));
  EXPECT_FALSE((LogFilter{.workers = {1}}.has(entry)));
  EXPECT_FALSE((LogFilter{.level = 4}.has(entry)));
  EXPECT_FALSE((LogFilter{.since_unix_ns = 101}.has(entry)));
}

TEST(JobLogs, TellWhatHasCome) {
  const RunFolderOfLogs folder;
  folder.add("worker-0.log", line(1, "a") + line(3, "c"));
  JobLogs logs = folder.logs();
  std::string texts;
  const auto look = [&] {
    texts += "|";
    for (const LogEntry& entry : logs.news(folder.path(), true)) texts += entry.text;
  };
  while (const auto entry = logs.next(true)) texts += entry->text;
  look();
  folder.add("worker-0.log", "+\n");
  look();
  look();
  folder.add("worker-1.log", line(4, "d") + line(6, "f"));
  folder.add("worker-0.log", line(5, "e") + line(7, "g") + "half");
  look();
  folder.add("worker-0.log", " a line\n");
  look();
  look();
  folder.add("worker-1.log", line(8, "end").substr(0, line(8, "end").size() - 1));
  texts += "|";
  for (const LogEntry& entry : logs.news(folder.path(), false)) texts += entry.text;
  EXPECT_EQ(texts, "ac|||+|de|f|g\nhalf a line|end");
}

/// A replaced file is read from its beginning, as `tail -F` does.
TEST(JobLogs, BeginAFileAnewThatIsReplaced) {
  const RunFolderOfLogs folder;
  folder.add("worker-0.log", line(1, "a") + line(2, "b"));
  JobLogs logs = folder.logs();
  while (logs.next(true)) {
  }
  logs.news(folder.path(), true);
  logs.news(folder.path(), true);
  std::filesystem::remove(folder.path() + "/worker-0.log");
  folder.add("worker-0.log", line(3, "c") + line(4, "d"));
  const auto news = logs.news(folder.path(), true);
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0].text, "c");
  std::filesystem::resize_file(folder.path() + "/worker-0.log", 0);
  folder.add("worker-0.log", line(5, "e"));
  logs.news(folder.path(), true);
  const auto last = logs.news(folder.path(), true);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].text, "e");
}

TEST(JobLogs, HaveTheEventsOfWhoHasNoFile) {
  MadeJob made(2, 1);
  Snapshot job = std::move(made.snapshot);
  job.unix_minus_monotonic_ns = 1'000'000'000'000'000'000;
  MadeEvents events(job);
  events.of(RingKind::shared, 0, {.kind = EventKind::log, .text = "a", .value = 3});
  events.of(RingKind::shared, 1, {.kind = EventKind::log, .text = "b", .value = 2});
  events.chip(0, {.kind = EventKind::error, .text = "c"});
  events.of(RingKind::loop, 0, {.kind = EventKind::report});
  const auto all = find_logged_events(job, {});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].text, "a");
  EXPECT_EQ(all[0].unix_ns, 1'000'000'010'000'001'000);
  EXPECT_TRUE(all[0].is_event);
  EXPECT_EQ(log_level_name(all[2].level), "error");
  EXPECT_EQ(all[2].worker, 0);

  const RunFolderOfLogs folder;
  folder.add("worker-0.log", line(1, "x"));
  const auto missing = find_logged_events(job, find_log_files(folder.path()));
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].text, "b");
  EXPECT_EQ(texts_of({find_log_files(folder.path()), missing}), "b\nx\n");
}

}  // namespace
}  // namespace weft::job_logs_test
