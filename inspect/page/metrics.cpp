#include "inspect/page/metrics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "inspect/views/actor_view.hpp"
#include "transport/published/published_memory.hpp"
#include "transport/published/row_memory.hpp"

namespace weft {
namespace {

/// Returns a sample's value as text. It may be NaN or infinite.
std::string sample_value(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

/// Returns the sorted step durations of the first chip that has any.
std::vector<double> step_durations(const Snapshot& job) {
  for (const EventRing& ring : job.rings) {
    if (ring.kind != RingKind::chip) continue;
    std::vector<double> seconds = step_seconds(ring);
    std::ranges::sort(seconds);
    if (!seconds.empty()) return seconds;
  }
  return {};
}

void add_step_durations(const Snapshot& job, std::string& text) {
  const std::vector<double> durations = step_durations(job);
  if (durations.empty()) return;
  begin_metric(text, "weft_step_duration_seconds", "summary",
               "Duration of a step, over the last steps that the black box keeps.");
  for (const double quantile : {0.5, 0.9, 0.99}) {
    const double at = quantile * static_cast<double>(durations.size() - 1);
    text += fmt::format("weft_step_duration_seconds{{quantile=\"{}\"}} {}\n", quantile,
                        durations[static_cast<std::size_t>(at)]);
  }
}

void add_waits(const Snapshot& job, std::string& text) {
  if (job.waits.empty()) return;
  std::string last;
  begin_metric(text, "weft_chip_wait_seconds_total", "counter",
               "Time that a chip has waited for others in collectives.");
  for (const ChipWaits& waits : job.waits) {
    const LedgerSums sums = sum_up(waits.calls);
    text += fmt::format("weft_chip_wait_seconds_total{{chip=\"{}\"}} {}\n", waits.chip,
                        static_cast<double>(sums.waited_ns) / 1e9);
    last +=
        fmt::format("weft_last_arrivals_total{{chip=\"{}\"}} {}\n", waits.chip, sums.times_last);
  }
  begin_metric(text, "weft_last_arrivals_total", "counter",
               "Collectives at which a chip arrived last in its group.");
  text += last;
}

/// Adds the numbers that loops have reported. A number's name becomes the value of a label, which
/// may contain any characters, instead of a metric's name.
void add_reported(const Snapshot& job, const JobView& view, std::string& text) {
  if (view.loss) {
    begin_metric(text, "weft_loss", "gauge", "The loss that the loop reported last.");
    text += fmt::format("weft_loss {}\n", sample_value(*view.loss));
  }
  if (job.metrics.empty()) return;
  begin_metric(text, "weft_reported_value", "gauge",
               "The value that the loop reported last, by its name.");
  for (const ReportedMetric& metric : job.metrics) {
    text += fmt::format("weft_reported_value{{name={}}} {}\n", label_value(metric.name),
                        sample_value(metric.value));
  }
}

/// Adds a sample for each memory, labeled with the memory's name.
template <typename Memory>
void add_samples(const std::vector<std::pair<std::string, Memory>>& memories, std::string_view name,
                 std::string_view type, std::string_view help,
                 const std::function<std::uint64_t(const Memory&)>& value, std::string& text) {
  begin_metric(text, name, type, help);
  for (const auto& [its_name, memory] : memories) {
    text += fmt::format("{}{{name={}}} {}\n", name, label_value(its_name), value(memory));
  }
}

/// Opens the memory of all names. Leaves out memory that is still being made, or has another
/// version.
template <typename Open>
auto open_all(const std::vector<std::string>& names, Open open) {
  std::vector<std::pair<std::string, decltype(open(names.front()))>> memories;
  for (const std::string& name : names) {
    try {
      memories.emplace_back(name, open(name));
    } catch (const Error&) {
    }
  }
  return memories;
}

/// Returns how many holds readers have, summed over all places.
std::uint64_t count_holds(const PublishedMemory& memory) {
  std::uint64_t holds = 0;
  for (const PlaceRow& place : memory.header().places) {
    for (const auto& holders : place.holders) {
      holds += static_cast<std::uint64_t>(std::popcount(holders.load(std::memory_order_relaxed)));
    }
  }
  return holds;
}

void add_published(const Snapshot& job, std::string& text) {
  const auto memories = open_all(PublishedMemory::names(job.job), [&](const std::string& name) {
    return PublishedMemory::open(job.job, name, true);
  });
  if (memories.empty()) return;
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       const std::function<std::uint64_t(const PublishedMemory&)>& value) {
    add_samples(memories, name, type, help, value, text);
  };
  add("weft_published_versions_total", "counter", "Versions that a Publisher has published.",
      [](const PublishedMemory& its) { return its.header().published.load(); });
  add("weft_skipped_versions_total", "counter",
      "Versions that weren't published because readers held all places.",
      [](const PublishedMemory& its) { return its.header().skipped.load(); });
  add("weft_held_versions", "gauge", "Versions that processes hold, counted for each process.",
      count_holds);
}

void add_rows(const Snapshot& job, std::string& text) {
  const auto memories = open_all(RowMemory::names(job.job), [&](const std::string& name) {
    return RowMemory::open(job.job, name);
  });
  if (memories.empty()) return;
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       const std::function<std::uint64_t(const RowMemory&)>& value) {
    add_samples(memories, name, type, help, value, text);
  };
  add("weft_experience_rows_total", "counter", "Rows that writers have published.",
      [](const RowMemory& its) { return its.header().sent_rows.load(); });
  add("weft_experience_dropped_rows_total", "counter", "Rows that were older than max_lag.",
      [](const RowMemory& its) { return its.header().dropped_rows.load(); });
  add("weft_experience_lag_steps", "gauge",
      "The difference between the loop's step and the version of the rows taken last.",
      [](const RowMemory& its) { return its.header().lag.load(); });
  add("weft_experience_writer_waits_total", "counter",
      "How often a writer has found no room for rows.",
      [](const RowMemory& its) { return its.header().sender_waits.load(); });
}

}  // namespace

std::string label_value(std::string_view value) {
  std::string text = "\"";
  for (const char c : as_utf8(value)) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

void begin_metric(std::string& text, std::string_view name, std::string_view type,
                  std::string_view help) {
  text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

std::string metrics_text(const Snapshot& job) {
  const JobView view = view_job(job);
  std::string text;
  begin_metric(text, "weft_job_info", "gauge", "The job; always 1.");
  text += fmt::format("weft_job_info{{job={},name={},run_dir={},state={}}} 1\n",
                      label_value(job.job), label_value(job.header.name),
                      label_value(job.header.run_dir), label_value(view.state));
  begin_metric(text, "weft_job_hung", "gauge",
               "1 if the job makes no progress although it should.");
  const bool stuck = view.state == "hung" || view.state == "stopped";
  text += fmt::format("weft_job_hung {}\n", stuck ? 1 : 0);
  begin_metric(text, "weft_steps_total", "counter", "The current step of the job.");
  text += fmt::format("weft_steps_total {}\n", view.step);
  if (view.steps_per_s) {
    begin_metric(
        text, "weft_steps_per_second", "gauge",
        "Steps per second over the last 10 s, or over the time that the black box covers.");
    text += fmt::format("weft_steps_per_second {}\n", sample_value(*view.steps_per_s));
  }
  add_reported(job, view, text);
  add_step_durations(job, text);
  add_waits(job, text);
  add_published(job, text);
  add_rows(job, text);
  if (job.rows.empty()) return text;
  begin_metric(text, "weft_mailbox_messages", "gauge",
               "Messages that an actor hasn't handled yet.");
  for (const ActorView& actor : view_actors(job)) {
    text += fmt::format("weft_mailbox_messages{{actor={}}} {}\n", label_value(actor.name),
                        actor.mailbox);
  }
  return text;
}

}  // namespace weft
