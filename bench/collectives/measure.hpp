#pragma once
/// Measures teams in turn, one batch at a time, in alternating order. Results are medians over
/// rounds.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/collectives/team.hpp"

namespace weft::bench {

/// The result of one op at one size, for one implementation in one state of the machine.
struct Row {
  Op op = Op::barrier;
  std::size_t bytes = 0;
  int ranks = 0;
  std::string implementation = {};
  std::string setting = {};  ///< set if an implementation runs in several settings
  /// "loop", "cycle" or "marginal". A marginal is the time of a cycle minus the time of the same
  /// cycle with only a barrier. It is given only if every rank has a core of its own, and if it is
  /// longer than the time of a barrier.
  std::string metric = {};
  /// "near" if a cache line goes from core to core and back within kNearSeconds, otherwise "far".
  /// Only times of the same state may be compared.
  std::string state = {};
  double median_us = 0;
  double min_us = 0;
  double max_us = 0;
  int batches = 0;
  std::optional<double> limit_us = {};  ///< the median of the limit in the same metric and state
  std::optional<bool> verified = {};    ///< std::nullopt if the op has no result
};

struct MeasureOptions {
  int ranks = 2;
  int rounds = 15;
  double batch_seconds = 0.008;
};

class Measurement {
 public:
  /// `probe` is a team of two ranks of the limit. If a team in `teams` fails, prints the error on
  /// stderr and leaves the team out from then on; a failure of weft's team is thrown.
  Measurement(MeasureOptions options, std::unique_ptr<Team> probe,
              std::vector<std::unique_ptr<Team>> teams)
      : options_(options), probe_(std::move(probe)), teams_(std::move(teams)) {}

  std::vector<Row> run(Op op, std::size_t bytes, Metric metric);

 private:
  struct Series;
  bool near();
  void calibrate(Series& series);
  void add_batch(Series& series, int round, bool& near_before);
  std::vector<Row> rows_of(const std::vector<Series>& all) const;
  void add_row(std::vector<Row>& rows, const Series& series, std::string metric, bool near,
               const std::vector<double>& seconds) const;

  MeasureOptions options_;
  std::unique_ptr<Team> probe_;
  std::vector<std::unique_ptr<Team>> teams_;
};

}  // namespace weft::bench
