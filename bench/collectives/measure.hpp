#pragma once
/// Measures teams side by side: batch by batch, in alternating order, medians over rounds.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/collectives/team.hpp"

namespace weft::bench {

/// One op at one size, as one implementation did it in one state of the machine.
struct Row {
  Op op = Op::barrier;
  std::size_t bytes = 0;
  int ranks = 0;
  std::string implementation = {};
  std::string setting = {};  ///< where an implementation runs in several
  /// loop, cycle, or marginal: a cycle less the same cycle with only a barrier, where every rank
  /// has a core and a barrier costs less than what is left.
  std::string metric = {};
  /// near: a cache line goes from core to core and back within kNearSeconds; far: it doesn't.
  /// Times of one state only may be compared.
  std::string state = {};
  double median_us = 0;
  double min_us = 0;
  double max_us = 0;
  int batches = 0;
  std::optional<double> limit_us = {};  ///< median of the limit in the same metric and state
  std::optional<bool> verified = {};    ///< absent: the op has no result
};

struct MeasureOptions {
  int ranks = 2;
  int rounds = 15;
  double batch_seconds = 0.008;
};

class Measurement {
 public:
  /// `probe`: two ranks of the limit. A team that fails is named on stderr and left out from then
  /// on; where it is `weft`, the failure is thrown.
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
