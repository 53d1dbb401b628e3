/// Draws the roofline of a profile as SVG. Both axes are logarithmic.

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "data/files/utf8.hpp"
#include "inspect/profile/plan_profile.hpp"

namespace weft {
namespace {

constexpr double kWidth = 860;
constexpr double kHeight = 520;
constexpr double kLeft = 76;
constexpr double kRight = 24;
constexpr double kTop = 56;
constexpr double kBottom = 56;
constexpr double kLargestRadius = 18;
constexpr double kSmallestRadius = 2.5;
/// The largest value of the y axis divided by the smallest. Steps below the smallest value are
/// drawn at the bottom.
constexpr double kRange = 1e4;
constexpr double kLabelHeight = 14;
constexpr std::size_t kLabelCount = 8;
constexpr double kLabelShare = 0.005;

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : visible(text)) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

/// An axis of powers of ten, from `low` to `high`.
struct LogAxis {
  int low = 0;
  int high = 1;
  double from = 0;  ///< position of `low`
  double to = 1;

  double at(double value) const {
    const double along = (std::log10(value) - low) / (high - low);
    return from + std::clamp(along, 0.0, 1.0) * (to - from);
  }
};

LogAxis axis(double least, double most, double from, double to) {
  const int low = static_cast<int>(std::floor(std::log10(least)));
  const int high = std::max(low + 1, static_cast<int>(std::ceil(std::log10(most))));
  return {low, high, from, to};
}

std::string power(int exponent) {
  return exponent >= -3 && exponent <= 4 ? fmt::format("{:g}", std::pow(10, exponent))
                                         : fmt::format("1e{}", exponent);
}

double intensity(const ProfiledStep& step) {
  return static_cast<double>(step.cost.flops) / static_cast<double>(step.cost.bytes());
}

bool is_shown(const ProfiledStep& step) {
  return step.flops > 0 && step.cost.bytes() > 0 && step.times.count > 0;
}

class Roofline {
 public:
  Roofline(const Snapshot& job, const PlanProfile& profile) : job_(job), profile_(profile) {
    const ChipLimits& limits = profile.limits;
    double least_x = limits.f32_flops / limits.memory.front().bytes_per_s / 10;
    double most_x = limits.f32_flops / limits.memory.back().bytes_per_s * 4;
    double least_y = limits.f32_flops / 100;
    double most_y = limits.f32_flops;
    for (std::size_t i = 0; i < profile.steps.size(); ++i) {
      const ProfiledStep& step = profile.steps[i];
      if (!is_shown(step)) {
        hidden_share_ += step.share;
        hidden_ += step.times.count > 0 ? 1 : 0;
        continue;
      }
      shown_.push_back(i);
      has_bf16_ = has_bf16_ || step.cost.dtype == DType::bf16;
      largest_share_ = std::max(largest_share_, step.share);
      least_x = std::min(least_x, intensity(step));
      most_x = std::max(most_x, intensity(step));
      least_y = std::min(least_y, step.flops);
      most_y = std::max(most_y, step.flops);
    }
    if (has_bf16_) most_y = std::max(most_y, limits.bf16_flops);
    x_ = axis(least_x, most_x, kLeft, kWidth - kRight);
    y_ = axis(std::max(least_y, most_y / kRange), most_y, kHeight - kBottom, kTop);
    // The steps that took longest are drawn first, so that they don't hide small points.
    std::ranges::stable_sort(shown_, std::ranges::greater(),
                             [&](std::size_t i) { return profile.steps[i].share; });
  }

  std::string draw() {
    line(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" )"
         R"(font-family="sans-serif" font-size="12">)",
         kWidth, kHeight);
    line(R"(<rect width="100%" height="100%" fill="#fff"/>)");
    text(kLeft, 20, "start",
         fmt::format("job {}, program {}: {}", job_.job.substr(0, 6), profile_.program.number,
                     profile_.program.site));
    text(kLeft, 38, "start",
         fmt::format("each point is a step of the plan, and its area is the share of time; {} "
                     "steps without arithmetic ({:.1f} % of the time) have no point",
                     hidden_, 100 * hidden_share_));
    grid();
    const ChipLimits& limits = profile_.limits;
    const double flops = has_bf16_ ? limits.bf16_flops : limits.f32_flops;
    ceiling("f32", limits.f32_flops);
    if (has_bf16_) ceiling("bf16", flops);
    slope(limits.memory.front(), flops);
    if (limits.memory.size() > 1) slope(limits.memory.back(), flops);
    for (const std::size_t i : shown_) point(i);
    for (const std::size_t i : shown_) {
      if (labels_.size() < kLabelCount && profile_.steps[i].share >= kLabelShare) label(i);
    }
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    svg_ += fmt::format(format, std::forward<Args>(args)...) + '\n';
  }
  void text(double x, double y, std::string_view anchor, const std::string& words) {
    line(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" fill="#222">{}</text>)", x, y, anchor,
         escaped(words));
  }
  void stroke(double x1, double y1, double x2, double y2, std::string_view colour, double width) {
    line(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="{}"/>)",
         x1, y1, x2, y2, colour, width);
  }

  void grid() {
    for (int e = x_.low; e <= x_.high; ++e) {
      const double x = x_.at(std::pow(10, e));
      stroke(x, kTop, x, kHeight - kBottom, "#ddd", 1);
      text(x, kHeight - kBottom + 18, "middle", power(e));
    }
    for (int e = y_.low; e <= y_.high; ++e) {
      const double y = y_.at(std::pow(10, e));
      stroke(kLeft, y, kWidth - kRight, y, "#ddd", 1);
      text(kLeft - 8, y + 4, "end", power(e - 9));
    }
    text((kLeft + kWidth - kRight) / 2, kHeight - 14, "middle", "FLOP per byte read or written");
    line(R"svg(<text transform="translate(18 {:.1f}) rotate(-90)" text-anchor="middle" )svg"
         R"svg(fill="#222">GFLOP/s</text>)svg",
         kHeight / 2);
  }

  /// Draws the horizontal line that limits steps by the rate of arithmetic.
  void ceiling(const std::string& name, double flops) {
    const double ridge = flops / profile_.limits.memory.front().bytes_per_s;
    stroke(x_.at(ridge), y_.at(flops), kWidth - kRight, y_.at(flops), "#444", 1.5);
    text(x_.at(ridge) + 8, y_.at(flops) - 6, "start",
         fmt::format("{} {:.0f} GFLOP/s", name, flops / 1e9));
  }
  /// Draws the rising line that limits steps by the rate of memory.
  void slope(const MemoryRate& rate, double flops) {
    const double begin = std::max(std::pow(10, x_.low), std::pow(10, y_.low) / rate.bytes_per_s);
    const double ridge = flops / rate.bytes_per_s;
    stroke(x_.at(begin), y_.at(begin * rate.bytes_per_s), x_.at(ridge), y_.at(flops), "#444", 1.5);
    const double middle = std::sqrt(begin * ridge);
    text(x_.at(middle) - 6, y_.at(middle * rate.bytes_per_s) - 6, "end",
         fmt::format("{:.0f} GB/s", rate.bytes_per_s / 1e9));
  }

  std::pair<double, double> place(const ProfiledStep& step) const {
    return {x_.at(intensity(step)), y_.at(step.flops)};
  }
  double radius_of(const ProfiledStep& step) const {
    const double area = largest_share_ > 0 ? step.share / largest_share_ : 0;
    return std::max(kSmallestRadius, kLargestRadius * std::sqrt(area));
  }
  void point(std::size_t i) {
    const ProfiledStep& step = profile_.steps[i];
    const auto [x, y] = place(step);
    const double radius = radius_of(step);
    line(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" fill="{}" fill-opacity="0.6" stroke="#fff">)"
         R"(<title>{}</title></circle>)",
         x, y, radius, step.bound == Bound::compute ? "#c2410c" : "#1d6fb8",
         escaped(fmt::format("step {}: {} {} {}; {:.2f} us, {:.1f} % of the time, {:.2f} GFLOP/s, "
                             "{:.2f} GB/s, {:.0f} % of the limit",
                             i, step.op, step.type, step.place,
                             static_cast<double>(step.times.median_ns) / 1e3, 100 * step.share,
                             step.flops / 1e9, step.bytes / 1e9, 100 * step.of_limit)));
  }
  /// Adds a label unless it would overlap the label of a step that took longer.
  void label(std::size_t i) {
    const ProfiledStep& step = profile_.steps[i];
    const auto [x, y] = place(step);
    if (std::ranges::any_of(
            labels_, [&, at = y](double other) { return std::abs(other - at) < kLabelHeight; })) {
      return;
    }
    labels_.push_back(y);
    const bool is_right = x > (kLeft + kWidth) / 2;
    text(is_right ? x - radius_of(step) - 3 : x + radius_of(step) + 3, y + 4,
         is_right ? "end" : "start", fmt::format("{} {} ({:.1f} %)", i, step.op, 100 * step.share));
  }

  const Snapshot& job_;
  const PlanProfile& profile_;
  std::vector<std::size_t> shown_;
  std::vector<double> labels_;  // positions of the labels
  bool has_bf16_ = false;
  double largest_share_ = 0;
  std::size_t hidden_ = 0;
  double hidden_share_ = 0;
  LogAxis x_;
  LogAxis y_;
  std::string svg_;
};

}  // namespace

std::string roofline_svg(const Snapshot& job, const PlanProfile& profile) {
  return Roofline(job, profile).draw();
}

}  // namespace weft
