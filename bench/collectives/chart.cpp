#include "bench/collectives/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace weft::bench {
namespace {

constexpr double kWidth = 430;  // the width of a plot's area, in pixels
constexpr double kHeight = 250;
constexpr double kLeft = 64;  // the margin on the left of the area
constexpr double kTop = 46;
constexpr double kRowHeight = kTop + kHeight + 44;
constexpr double kColumnWidth = kLeft + kWidth + 24;
constexpr double kLegendHeight = 40;

struct Style {
  std::string_view name;
  std::string_view color;
};
constexpr std::array<Style, 10> kStyles = {{{"limit", "#8a8f98"},
                                            {"weft", "#d7263d"},
                                            {"ompi", "#8fbbe8"},
                                            {"ompi-tuned", "#1f6fc1"},
                                            {"mpich", "#a5d6a7"},
                                            {"mpich-tuned", "#2e8b57"},
                                            {"gloo", "#f0a202"},
                                            {"torch", "#8e5bb5"},
                                            {"message-queue", "#8d6e63"},
                                            {"iceoryx", "#11a3a3"}}};

std::string_view color_of(std::string_view name) {
  const auto style = std::ranges::find(kStyles, name, &Style::name);
  return style == kStyles.end() ? "#000000" : style->color;
}

/// Rows by the name of the implementation, then by size in bytes.
using Curves = std::map<std::string, std::map<std::size_t, Row>>;

/// Returns the most informative metric that was measured for an op at a size.
std::string_view headline_of(Op op, std::size_t bytes, std::span<const Row> rows) {
  const auto has = [&](std::string_view metric) {
    return std::ranges::any_of(rows, [&](const Row& row) {
      return row.op == op && row.bytes == bytes && row.metric == metric;
    });
  };
  const bool small = bytes < 65536 || op == Op::channel;
  if (!small && has("marginal")) return "marginal";
  return has("loop") && (small || !has("cycle")) ? "loop" : "cycle";
}

/// Returns the rows to draw: for each size, those of the state, near or far, in which more batches
/// were measured. If an implementation has several settings, only the row of its fastest setting is
/// included.
Curves curves_of(Op op, std::span<const Row> rows) {
  std::map<std::size_t, std::map<std::string, int>> batches;
  for (const Row& row : rows) {
    if (row.op == op) batches[row.bytes][row.state] += row.batches;
  }
  Curves curves;
  for (const Row& row : rows) {
    if (row.op != op || row.median_us <= 0) continue;
    if (row.metric != headline_of(op, row.bytes, rows)) continue;
    const auto& states = batches[row.bytes];
    const auto usual =
        std::ranges::max_element(states, {}, [](const auto& state) { return state.second; });
    if (row.state != usual->first) continue;
    auto& curve = curves[row.implementation];
    const auto [point, is_new] = curve.emplace(row.bytes, row);
    if (!is_new && row.median_us < point->second.median_us) point->second = row;
  }
  return curves;
}

/// Maps values to pixels, on a linear or a logarithmic scale.
struct Axis {
  double low;
  double high;
  bool logarithmic;

  double part(double value) const {
    return logarithmic ? std::log(value / low) / std::log(high / low)
                       : (value - low) / (high - low);
  }
};

std::string bytes_label(double bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:g} {}", bytes, kUnits[unit]);
}

std::string time_label(double microseconds) {
  if (microseconds < 0.9) return fmt::format("{:g} ns", std::round(microseconds * 1e3));
  if (microseconds < 900) return fmt::format("{:g} µs", std::round(microseconds));
  if (microseconds < 900e3) return fmt::format("{:g} ms", std::round(microseconds / 1e3));
  return fmt::format("{:g} s", std::round(microseconds / 1e6));
}

class Plot {
 public:
  Plot(double left, double top, Axis x, Axis y) : left_(left), top_(top), x_(x), y_(y) {}

  std::string frame(const std::string& title) const {
    std::string svg = fmt::format("<text class='title' x='{:.0f}' y='{:.0f}'>{}</text>\n", left_,
                                  top_ - 14, title);
    for (double bytes = 1; bytes <= x_.high; bytes *= 16) {
      if (bytes < x_.low) continue;
      svg += fmt::format("<line class='grid' x1='{0:.1f}' x2='{0:.1f}' y1='{1}' y2='{2}'/>\n",
                         x(bytes), top_, top_ + kHeight);
      svg += fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle'>{}</text>\n", x(bytes),
                         top_ + kHeight + 18, bytes_label(bytes));
    }
    return svg;
  }

  std::string mark(double value, const std::string& label) const {
    return fmt::format(
        "<line class='grid' x1='{}' x2='{}' y1='{:.1f}' y2='{:.1f}'/>\n"
        "<text x='{}' y='{:.1f}' text-anchor='end'>{}</text>\n",
        left_, left_ + kWidth, y(value), y(value), left_ - 8, y(value) + 4, label);
  }

  /// Draws `value` of each row. Rows whose value is 0 have no measurement and are omitted.
  std::string curve(const std::string& name, const std::map<std::size_t, Row>& points,
                    const std::function<double(const Row&)>& value) const {
    const std::string_view color = color_of(name);
    std::string line;
    std::string dots;
    for (const auto& [bytes, row] : points) {
      const double at = value(row);
      if (at <= 0) continue;
      const std::string place = fmt::format("{:.1f},{:.1f}", x(static_cast<double>(bytes)), y(at));
      line += (line.empty() ? "M" : " L") + place;
      dots += fmt::format(
          "<circle cx='{:.1f}' cy='{:.1f}' r='3' stroke='{}' fill='{}'><title>{}: {:.3f} µs, "
          "{}</title></circle>\n",
          x(static_cast<double>(bytes)), y(at), color, row.state == "near" ? color : "white", name,
          row.median_us, row.state);
    }
    return fmt::format("<path d='{}' stroke='{}' stroke-width='{}'{}/>\n{}", line, color,
                       name == "weft" ? 2.6 : 1.5, name == "limit" ? " stroke-dasharray='5 4'" : "",
                       dots);
  }

 private:
  double x(double bytes) const { return left_ + kWidth * x_.part(bytes); }
  double y(double value) const {
    return top_ + kHeight * (1 - std::clamp(y_.part(value), 0.0, 1.0));
  }

  double left_;
  double top_;
  Axis x_;
  Axis y_;
};

std::string draw_op(Op op, int ranks, const Curves& curves, double top) {
  double low_us = INFINITY, high_us = 0, low_bytes = INFINITY, high_bytes = 0;
  for (const auto& [name, points] : curves) {
    for (const auto& [bytes, row] : points) {
      low_us = std::min(low_us, row.median_us);
      high_us = std::max(high_us, row.median_us);
      low_bytes = std::min(low_bytes, static_cast<double>(bytes));
      high_bytes = std::max(high_bytes, static_cast<double>(bytes));
    }
  }
  const Axis sizes{low_bytes / 1.5, high_bytes * 1.5, true};
  const Axis times{std::pow(10, std::floor(std::log10(low_us))),
                   std::pow(10, std::ceil(std::log10(high_us))), true};
  const Plot time(kLeft, top, sizes, times);
  std::string svg = time.frame(fmt::format("{}, {} ranks: time", to_string(op), ranks));
  for (double us = times.low; us <= times.high * 1.01; us *= 10) {
    svg += time.mark(us, time_label(us));
  }
  const Plot share(kColumnWidth + kLeft, top, sizes, {0, 125, false});
  svg += share.frame(fmt::format("{}, {} ranks: share of the limit", to_string(op), ranks));
  for (const int percent : {0, 25, 50, 75, 100, 125}) {
    svg += share.mark(percent, fmt::format("{} %", percent));
  }
  for (const auto& [name, points] : curves) {
    svg += time.curve(name, points, [](const Row& row) { return row.median_us; });
    if (name == "limit") continue;
    svg += share.curve(name, points, [](const Row& row) {
      return row.limit_us ? 100 * *row.limit_us / row.median_us : 0;
    });
  }
  return svg;
}

std::string draw_legend(const std::vector<std::string_view>& names) {
  std::string svg;
  double x = kLeft;
  for (const std::string_view name : names) {
    svg += fmt::format(
        "<line x1='{}' x2='{}' y1='20' y2='20' stroke='{}' stroke-width='3'/>\n"
        "<text x='{}' y='24'>{}</text>\n",
        x, x + 18, color_of(name), x + 24, name);
    x += 44 + 7.2 * static_cast<double>(name.size());
  }
  return svg;
}

}  // namespace

std::string draw_chart(std::span<const Row> rows) {
  std::string plots;
  double top = kLegendHeight + kTop;
  std::vector<std::string_view> names;
  for (const Style& style : kStyles) {
    if (std::ranges::count(rows, style.name, &Row::implementation) > 0) names.push_back(style.name);
  }
  std::vector<Op> ops;
  for (const Row& row : rows) {
    if (std::ranges::count(ops, row.op) == 0 && row.op != Op::barrier) ops.push_back(row.op);
  }
  for (const Op op : ops) {
    const Curves curves = curves_of(op, rows);
    if (curves.empty()) continue;
    plots += draw_op(op, rows.front().ranks, curves, top);
    top += kRowHeight;
  }
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}'>\n"
      "<style>text{{font:12px sans-serif;fill:#444}} .title{{font-size:14px;font-weight:bold;"
      "fill:#111}} .grid{{stroke:#e3e6ea}} path{{fill:none}}</style>\n"
      "<rect width='{0:.0f}' height='{1:.0f}' fill='white'/>\n{2}{3}</svg>\n",
      2 * kColumnWidth, top - kTop + 10, draw_legend(names), plots);
}

}  // namespace weft::bench
