#include "bench/collectives/report.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/machine.hpp"

namespace weft::bench {
namespace {

using nlohmann::json;

/// The two rows to which a row of the same metric and state is compared: weft's row, and the row of
/// the fastest peer with correct results. A pointer is null if there is no such row.
struct Rivals {
  const Row* weft = nullptr;
  const Row* best_peer = nullptr;
};

Rivals rivals_of(const Row& row, std::span<const Row> rows) {
  Rivals rivals;
  for (const Row& other : rows) {
    if (other.metric != row.metric || other.state != row.state) continue;
    if (other.implementation == "weft") {
      rivals.weft = &other;
    } else if (other.implementation != "limit" && other.verified.value_or(true) &&
               (rivals.best_peer == nullptr || other.median_us < rivals.best_peer->median_us)) {
      rivals.best_peer = &other;
    }
  }
  return rivals;
}

std::string percent_of_limit(const Row& row) {
  if (!row.limit_us || row.implementation == "limit") return "";
  return fmt::format("{:.0f} %", 100 * *row.limit_us / row.median_us);
}

}  // namespace

void print_rows(std::span<const Row> rows) {
  const Row* previous = nullptr;
  for (const Row& row : rows) {
    if (previous == nullptr || previous->metric != row.metric || previous->state != row.state) {
      fmt::print("\n{:<44}{:>11}{:>11}{:>11}{:>9}{:>9}\n",
                 fmt::format("{} {} B, {} ranks, {}, {}", to_string(row.op), row.bytes, row.ranks,
                             row.metric, row.state),
                 "median us", "min", "max", "limit", "/ weft");
    }
    const Rivals rivals = rivals_of(row, rows);
    const bool compared = rivals.weft != nullptr && rivals.weft != &row;
    const std::string setting = row.setting.empty() ? "" : fmt::format(" ({})", row.setting);
    fmt::print("  {:<42}{:>11.3f}{:>11.3f}{:>11.3f}{:>9}{:>9}{}\n",
               row.implementation + setting + (row.verified.value_or(true) ? "" : " WRONG"),
               row.median_us, row.min_us, row.max_us, percent_of_limit(row),
               compared ? fmt::format("{:.2f}", row.median_us / rivals.weft->median_us) : "",
               rivals.best_peer == &row ? " *" : "");
    previous = &row;
  }
  std::fflush(stdout);
}

json report(std::span<const Row> rows, const std::string& command) {
  json results = json::array();
  for (const Row& row : rows) {
    results.push_back({{"op", to_string(row.op)},
                       {"bytes", row.bytes},
                       {"ranks", row.ranks},
                       {"implementation", row.implementation},
                       {"setting", row.setting},
                       {"metric", row.metric},
                       {"state", row.state},
                       {"median_us", row.median_us},
                       {"min_us", row.min_us},
                       {"max_us", row.max_us},
                       {"batches", row.batches},
                       {"limit_us", row.limit_us ? json(*row.limit_us) : json()},
                       {"verified", row.verified ? json(*row.verified) : json()}});
  }
  json whole = describe_run(command);
  whole["results"] = std::move(results);
  return whole;
}

}  // namespace weft::bench
