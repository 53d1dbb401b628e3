#include "bench/collectives/measure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>

#include <weft/tensor/error.hpp>

#include "bench/collectives/rank.hpp"

namespace weft::bench {
namespace {

constexpr double kNearSeconds = 250e-9;
constexpr int kParts = 16;
constexpr std::int64_t kRepetitionsMin = 3;
constexpr std::int64_t kRepetitionsMax = 1'000'000;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Returns whether the limit is defined for this measurement. It isn't for a broadcast of less than
/// kExchangeBytes, because its root needn't wait for an exchange; and not for a cycle if ranks
/// share a core, because the scheduler then decides how long an exchange takes.
bool has_limit(Op op, std::size_t bytes, Metric metric, int ranks) {
  if (metric == Metric::cycle) return core_each(ranks);
  return op != Op::broadcast || bytes >= kExchangeBytes;
}

/// Times per call, of the batches measured in one state.
struct Samples {
  std::vector<double> calls;
  std::vector<double> marginals;
};

}  // namespace

/// The measurements of one team for one op at one size.
struct Measurement::Series {
  Team* team = nullptr;
  Request request = {};
  double barrier_seconds = 0;  ///< for a cycle: the time of a barrier alone
  std::optional<bool> verified = {};
  std::array<Samples, 2> samples = {};  ///< index: the state, 0 for far and 1 for near
  bool failed = false;

  Reply run() {
    const Reply reply = team->run(request);
    if (reply.verified) verified = verified.value_or(true) && *reply.verified;
    return reply;
  }
};

/// Returns whether the cores are near. Uses the fastest of several probes, because a probe may be
/// preempted.
bool Measurement::near() {
  constexpr Request kProbe{.op = Op::probe, .repetitions = 300};
  double best = INFINITY;
  for (int i = 0; i < 3; ++i) {
    best = std::min(best, probe_->run(kProbe).call_seconds);
  }
  return best <= kNearSeconds;
}

/// Determines the number of repetitions that fill the time of a batch.
void Measurement::calibrate(Series& series) {
  Request& request = series.request;
  for (const double share : {0.02, 0.2, 1.0}) {
    const Reply reply = series.run();
    const double seconds = std::max(reply.call_seconds + reply.baseline_seconds, 1e-9);
    request.repetitions =
        std::clamp(static_cast<std::int64_t>(share * options_.batch_seconds / seconds),
                   kRepetitionsMin, kRepetitionsMax);
  }
  if (request.metric == Metric::cycle && request.op != Op::channel) {
    const Request barriers{.op = Op::barrier, .repetitions = 50, .parts = request.parts};
    series.barrier_seconds = series.team->run(barriers).call_seconds;
  }
}

void Measurement::add_batch(Series& series, int round, bool& near_before) {
  series.request.round = round;
  const Reply reply = series.run();
  const bool near_after = near();
  Samples& samples = series.samples[near_before && near_after ? 1 : 0];
  near_before = near_after;
  samples.calls.push_back(reply.call_seconds);
  if (reply.baseline_seconds > 0 && core_each(options_.ranks)) {
    samples.marginals.push_back(reply.call_seconds - reply.baseline_seconds);
  }
}

std::vector<Row> Measurement::run(Op op, std::size_t bytes, Metric metric) {
  std::vector<Series> all;
  for (const auto& team : teams_) {
    if (!team->offers(op)) continue;
    if (team->name() == "limit" && !has_limit(op, bytes, metric, options_.ranks)) continue;
    all.push_back({.team = team.get(),
                   .request = {.op = op,
                               .bytes = bytes,
                               .metric = metric,
                               .parts = core_each(options_.ranks) ? kParts : 1}});
  }
  const auto guarded = [this](Series& series, auto&& body) {
    if (series.failed) return;
    try {
      body();
    } catch (const Error& error) {
      if (error.code() == Errc::cancelled || series.team->name() == "weft") throw;
      fmt::print(stderr, "left out: {}\n", error.what());
      series.failed = true;
      std::erase_if(teams_, [&](const auto& team) { return team.get() == series.team; });
    }
  };
  for (Series& series : all) guarded(series, [&] { calibrate(series); });
  bool near_before = near();
  for (int round = 0; round < options_.rounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      Series& series = all[round % 2 == 0 ? i : all.size() - 1 - i];
      guarded(series, [&] { add_batch(series, round, near_before); });
    }
  }
  std::erase_if(all, &Series::failed);
  return rows_of(all);
}

std::vector<Row> Measurement::rows_of(const std::vector<Series>& all) const {
  std::vector<Row> rows;
  for (const bool near : {true, false}) {
    for (const Series& series : all) {
      const bool loop = series.request.metric == Metric::loop;
      add_row(rows, series, loop ? "loop" : "cycle", near, series.samples[near].calls);
    }
    for (const Series& series : all) {
      const std::vector<double>& marginals = series.samples[near].marginals;
      // If a barrier takes longer than the rest of the cycle, the rest is less than the noise.
      if (marginals.empty() || median(marginals) <= series.barrier_seconds) continue;
      add_row(rows, series, "marginal", near, marginals);
    }
  }
  for (Row& row : rows) {
    const auto limit = std::ranges::find_if(rows, [&](const Row& other) {
      return other.implementation == "limit" && other.metric == row.metric &&
             other.state == row.state;
    });
    if (limit != rows.end()) row.limit_us = limit->median_us;
  }
  return rows;
}

void Measurement::add_row(std::vector<Row>& rows, const Series& series, std::string metric,
                          bool near, const std::vector<double>& seconds) const {
  constexpr std::size_t kShareMin = 5;  // a row needs 1 / 5 of the rounds to be significant
  const auto rounds = static_cast<std::size_t>(options_.rounds);
  if (seconds.empty() || kShareMin * seconds.size() < rounds) return;
  const auto [min, max] = std::ranges::minmax(seconds);
  rows.push_back({.op = series.request.op,
                  .bytes = series.request.bytes,
                  .ranks = options_.ranks,
                  .implementation = series.team->name(),
                  .setting = series.team->setting(),
                  .metric = std::move(metric),
                  .state = near ? "near" : "far",
                  .median_us = median(seconds) * 1e6,
                  .min_us = min * 1e6,
                  .max_us = max * 1e6,
                  .batches = static_cast<int>(seconds.size()),
                  .verified = series.verified});
}

}  // namespace weft::bench
