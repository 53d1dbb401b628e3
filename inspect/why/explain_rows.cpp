#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspect/why/explain_root.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

std::string silence_of(const RowWriter& writer, std::int64_t now_ns) {
  const std::string pid = fmt::format("pid {}", writer.pid);
  if (!std::filesystem::exists("/proc/" + std::to_string(writer.pid))) return pid + " is gone";
  if (writer.sent_ns == 0) return pid + " has sent no rows yet";
  const auto silent_ns = std::max<std::int64_t>(0, now_ns - writer.sent_ns);
  return fmt::format("{}, silent for {}", pid, seconds_text(static_cast<double>(silent_ns) / 1e9));
}

}  // namespace

void explain_rows(Root& root, const JobStreams& streams, const ActorRow& loop) {
  if (loop.state != ActorState::loading) return;
  const RowStream* stream = streams.rows_of(loop.inside);
  if (stream == nullptr) return;
  root.notes.push_back(
      {"rows", fmt::format("{} of step {} have come", stream->rows_text(loop.worker), loop.step)});
  std::vector<std::string> writers;
  for (const RowWriter& writer : stream->writers) {
    writers.push_back(silence_of(writer, streams.at_ns));
  }
  root.notes.push_back(
      {"from", writers.empty()
                   ? fmt::format("no process has opened ExperienceWriter \"{}\"", stream->name)
                   : fmt::format("{}", fmt::join(writers, "; "))});
  root.fix =
      "find out why the writers send no rows: weft inspect why NAME, with the name of their "
      "actor system";
}

}  // namespace weft
