#include "inspect/history/late.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "inspect/history/call_places.hpp"
#include "inspect/history/own_time.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/colours.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/views/mesh_grid.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

double to_seconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string remark_of(const Snapshot& job) {
  if (job.rows.empty() && job.end && !job.end->error) {
    return "the job has ended well and keeps no ledger; summary.json in its run folder shows how "
           "long each chip waited";
  }
  if (job.waits.empty()) {
    return "the job has no ledger: it keeps no events, or none of its chips has started";
  }
  if (job.waits.size() == 1) return "the job has one chip, which waits for nobody";
  const bool any =
      std::ranges::any_of(job.waits, [](const ChipWaits& waits) { return !waits.calls.empty(); });
  return any ? "" : "no chip has been in a collective yet";
}

std::vector<LateChip> chips_of(const Snapshot& job) {
  std::vector<LateChip> chips;
  std::map<int, double> awaited_s;
  double all_s = 0;
  for (const ChipWaits& waits : job.waits) {
    for (std::size_t other = 0; other < waits.waited_for_ns.size(); ++other) {
      const double seconds = to_seconds(waits.waited_for_ns[other]);
      awaited_s[static_cast<int>(other)] += seconds;
      all_s += seconds;
    }
  }
  const std::map<int, double> above = own_time_above_median(job);
  for (const ChipWaits& waits : job.waits) {
    const LedgerSums sums = sum_up(waits.calls);
    LateChip chip{.chip = waits.chip,
                  .collectives = sums.calls,
                  .times_last = sums.times_last,
                  .awaited_s = awaited_s[waits.chip],
                  .waited_s = to_seconds(sums.waited_ns)};
    if (const ActorRow* row = job.chip(waits.chip)) chip.worker = row->worker;
    if (all_s > 0) chip.share = chip.awaited_s / all_s;
    if (const auto own = above.find(waits.chip); own != above.end()) chip.own_above_s = own->second;
    chips.push_back(chip);
  }
  std::ranges::stable_sort(chips, std::ranges::greater(), &LateChip::awaited_s);
  return chips;
}

/// The sums of the ledger entries of all chips for one call.
struct CallSum {
  LateCall call{};
  std::vector<LedgerEntry::Bucket> waits{};
};

void add_entry(CallSum& sum, const LedgerEntry& entry, int chip) {
  sum.call.text = entry.text;
  sum.call.calls += entry.count;
  sum.call.waited_s += to_seconds(entry.waited_ns);
  if (entry.times_last > sum.call.times_last) {
    sum.call.times_last = entry.times_last;
    sum.call.last_chip = chip;
  }
  if (sum.waits.size() < entry.waits.size()) sum.waits.resize(entry.waits.size());
  for (std::size_t b = 0; b < entry.waits.size(); ++b) {
    sum.waits[b].from_ns = entry.waits[b].from_ns;
    sum.waits[b].count += entry.waits[b].count;
  }
}

/// Returns the upper bound of the bucket that contains the quantile. The bound is the beginning of
/// the next bucket; the last bucket has none.
std::optional<double> upper_bound_of(const std::vector<LedgerEntry::Bucket>& waits,
                                     double quantile) {
  double all = 0;
  for (const LedgerEntry::Bucket& bucket : waits) all += static_cast<double>(bucket.count);
  double seen = 0;
  for (std::size_t b = 0; b + 1 < waits.size(); ++b) {
    seen += static_cast<double>(waits[b].count);
    if (seen > 0 && seen >= quantile * all) return to_seconds(waits[b + 1].from_ns);
  }
  return {};
}

std::vector<LateCall> calls_of(const Snapshot& job) {
  std::map<std::string_view, CallSum> sums;
  for (const ChipWaits& waits : job.waits) {
    for (const LedgerEntry& entry : waits.calls) add_entry(sums[entry.text], entry, waits.chip);
  }
  const auto places = places_of_calls(job);
  std::vector<LateCall> calls;
  for (auto& [text, sum] : sums) {
    if (const auto place = places.find(text); place != places.end()) sum.call.place = place->second;
    sum.call.p50_s = upper_bound_of(sum.waits, 0.5);
    sum.call.p99_s = upper_bound_of(sum.waits, 0.99);
    calls.push_back(sum.call);
  }
  std::ranges::stable_sort(calls, std::ranges::greater(), &LateCall::waited_s);
  return calls;
}

double reach_of_events(const Snapshot& job) {
  double reach = 0;
  for (const EventRing& ring : job.rings) {
    if (ring.kind != RingKind::chip || ring.events.empty()) continue;
    reach = std::max(reach, (static_cast<double>(ring.events.back().at_ns) -
                             static_cast<double>(ring.events.front().at_ns)) /
                                1e9);
  }
  return reach;
}

std::string time_or_dash(const std::optional<double>& seconds) {
  return seconds ? time_text(*seconds) : "-";
}

std::string came_last_text(const LateChip& chip) {
  if (chip.collectives == 0) return "-";
  return percent_text(static_cast<double>(chip.times_last) / static_cast<double>(chip.collectives));
}

std::string chips_text(const Late& late) {
  Table table({columns::kChip, columns::kWorker, columns::kCameLast, columns::kCollectives,
               columns::kOthersWait, columns::kShare, columns::kWaits, columns::kOwnAbove});
  for (const LateChip& chip : late.chips) {
    table.add({std::to_string(chip.chip), chip.worker < 0 ? "-" : std::to_string(chip.worker),
               came_last_text(chip), std::to_string(chip.collectives), time_text(chip.awaited_s),
               percent_text(chip.share), time_text(chip.waited_s), time_or_dash(chip.own_above_s)});
  }
  return table.to_string();
}

std::string calls_text(const Late& late) {
  Table table({columns::kCollective, columns::kAt, columns::kCalls, columns::kWaits, columns::kP50,
               columns::kP99, columns::kMostlyLast});
  for (const LateCall& call : late.calls) {
    table.add({call.text.empty() ? "others" : std::string(call.text), std::string(call.place),
               std::to_string(call.calls), time_text(call.waited_s), time_or_dash(call.p50_s),
               time_or_dash(call.p99_s),
               call.last_chip < 0
                   ? "-"
                   : fmt::format("chip {} ({} times)", call.last_chip, call.times_last)});
  }
  return table.to_string();
}

template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json to_json(const LateChip& chip) {
  return {{"chip", chip.chip},
          {"worker", chip.worker},
          {"collectives", chip.collectives},
          {"times_last", chip.times_last},
          {"awaited_s", chip.awaited_s},
          {"waited_s", chip.waited_s},
          {"share", chip.share},
          {"own_above_s", or_null(chip.own_above_s)}};
}

nlohmann::json to_json(const LateCall& call) {
  return {
      {"text", call.text},           {"place", call.place},          {"calls", call.calls},
      {"waited_s", call.waited_s},   {"p50_s", or_null(call.p50_s)}, {"p99_s", or_null(call.p99_s)},
      {"last_chip", call.last_chip}, {"times_last", call.times_last}};
}

}  // namespace

Late find_late(const Snapshot& job) {
  Late late{.remark = remark_of(job)};
  if (!late.remark.empty()) return late;
  late.chips = chips_of(job);
  late.calls = calls_of(job);
  late.events_s = reach_of_events(job);
  return late;
}

std::string late_text(const Snapshot& job) {
  const Late late = find_late(job);
  if (!late.remark.empty()) return late.remark + "\n";
  std::string text =
      chips_text(late) + "\n" + calls_text(late) +
      "\np50 and p99 are upper bounds of histogram buckets; each bound is twice the previous one\n";
  if (late.events_s > 0) {
    text += fmt::format(
        "own above median: the chip's own time between collectives, only in the last {}\n",
        time_text(late.events_s));
  }
  return text;
}

std::string late_mesh_text(const Snapshot& job, bool colours) {
  constexpr double kMuch = 0.5;
  const Late late = find_late(job);
  if (!late.remark.empty()) return late.remark + "\n";
  std::vector<MeshCell> cells(static_cast<std::size_t>(job.header.num_chips));
  for (const LateChip& chip : late.chips) {
    // The black box may have been kept from another job.
    if (chip.chip >= job.header.num_chips) continue;
    cells[static_cast<std::size_t>(chip.chip)] = {
        .text = fmt::format("{:.0f}", 100 * chip.share),
        .colour = colours && chip.share >= kMuch ? kRed : ""};
  }
  const std::vector<std::string> lines = mesh_grid(job, cells);
  if (lines.empty()) return "no mesh\n";
  return fmt::format(
      "{}\n\n% of all waiting time in collectives that was spent waiting for this chip\n",
      fmt::join(lines, "\n"));
}

std::string late_json(const Snapshot& job) {
  using Json = nlohmann::json;
  const Late late = find_late(job);
  Json json{{"schema", "weft.late/1"},   {"job", job.job},
            {"name", job.header.name},   {"remark", late.remark},
            {"events_s", late.events_s}, {"chips", Json::array()},
            {"calls", Json::array()}};
  for (const LateChip& chip : late.chips) json["chips"].push_back(to_json(chip));
  for (const LateCall& call : late.calls) json["calls"].push_back(to_json(call));
  return json_text(json);
}

}  // namespace weft
