#include "tools/weft/launch/progress.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "data/files/utf8.hpp"
#include "inspect/views/table.hpp"

namespace weft {
namespace {

/// The period over which the rate is computed.
constexpr std::chrono::seconds kWindow{5};

std::string rate_text(double rate) {
  if (rate <= 0) return {};
  if (rate >= 100) return fmt::format("  {:.0f} steps/s", rate);
  return rate >= 1 ? fmt::format("  {:.1f} steps/s", rate)
                   : fmt::format("  {:.1f} s/step", 1 / rate);
}

std::string time_left(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return {};
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole < 3600) return fmt::format("  ETA {}:{:02}", whole / 60, whole % 60);
  return fmt::format("  ETA {}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

void Progress::add(const JobGlance& glance, Clock::time_point now) {
  // If the step decreases, the program was started again or runs another job, so the rate is
  // computed from new samples.
  if (!samples_.empty() && glance.step < samples_.back().step) samples_.clear();
  last_ = glance;
  samples_.push_back({now, glance.step});
  while (samples_.size() > 2 && now - samples_.front().at > kWindow) samples_.pop_front();
}

double Progress::steps_per_second() const {
  if (samples_.size() < 2) return 0;
  const std::chrono::duration<double> took = samples_.back().at - samples_.front().at;
  if (took.count() <= 0) return 0;
  return static_cast<double>(samples_.back().step - samples_.front().step) / took.count();
}

std::string Progress::line(std::size_t width) const {
  if (!last_) return {};
  const double rate = steps_per_second();
  std::string text =
      fmt::format("{}  step {}{}", visible(last_->name), last_->step, rate_text(rate));
  if (last_->loss) text += fmt::format("  loss {:.4g}", *last_->loss);
  text += fmt::format("  {} chip{}", last_->chips, last_->chips == 1 ? "" : "s");
  const double left = steps_ - static_cast<double>(last_->step);
  if (steps_ > 0 && rate > 0 && left >= 0) text += time_left(left / rate);
  return text.substr(0, std::min(text.size(), width));
}

}  // namespace weft
