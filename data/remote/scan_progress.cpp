#include "data/remote/scan_progress.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const ScanReports& to_stderr() {
  static const ScanReports reports{
      .seconds = steady_seconds,
      .say = [](const ScanPlace& place) { fmt::print(stderr, "weft: {}\n", to_string(place)); },
      .end = [] {}};
  return reports;
}

thread_local const ScanReports* current = nullptr;

struct Unit {
  double size = 1;
  std::string name{};
};

/// Returns the unit in which `largest` is a number with few digits.
Unit unit_of(const ScanPlace& place, double largest) {
  if (place.unit != "bytes") return {1, std::string(place.unit)};
  constexpr std::array<std::pair<double, const char*>, 4> kUnits{
      {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}}};
  for (const auto& [size, name] : kUnits) {
    if (largest >= size) return {size, name};
  }
  return {1, "bytes"};
}

std::string number(double value, const Unit& unit) {
  return unit.size == 1 ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value / unit.size);
}

}  // namespace

std::string to_string(const ScanPlace& place) {
  const auto done = static_cast<double>(place.done);
  const auto total = static_cast<double>(place.total);
  const Unit unit = unit_of(place, place.total > 0 ? total : done);
  std::string text = fmt::format("reads {}: {}", place.what, number(done, unit));
  if (place.total > 0) text += fmt::format(" of {}", number(total, unit));
  text += fmt::format(" {} after {:.0f} s", unit.name, place.seconds);
  if (place.seconds <= 0) return text;
  const double rate = done / place.seconds;
  const Unit rate_unit = unit_of(place, rate);
  return text + fmt::format(", {} {} a second", number(rate, rate_unit), rate_unit.name);
}

ScanReportScope::ScanReportScope(ScanReports reports)
    : reports_(std::move(reports)), before_(std::exchange(current, &reports_)) {}

ScanReportScope::~ScanReportScope() { current = before_; }

ScanProgress::ScanProgress(std::string what, std::string_view unit, std::int64_t total)
    : reports_(current != nullptr ? *current : to_stderr()),
      what_(std::move(what)),
      unit_(unit),
      total_(total),
      begin_(reports_.seconds()),
      next_(begin_ + kScanSilence) {}

ScanProgress::~ScanProgress() {
  if (has_reported_) reports_.end();
}

void ScanProgress::advance(std::int64_t count) {
  done_ += count;
  const double now = reports_.seconds();
  if (now < next_) return;
  reports_.say({what_, unit_, done_, total_, now - begin_});
  next_ = now + kScanInterval;
  has_reported_ = true;
}

}  // namespace weft
