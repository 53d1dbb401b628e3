#pragma once
/// Draws results as an SVG picture.

#include <span>
#include <string>

#include "bench/collectives/measure.hpp"

namespace weft::bench {

/// Returns an SVG document. Each op measured at several sizes has two plots: time against size, and
/// the share of the limit that each implementation reaches. Each implementation is shown in its
/// best setting. From 64 KiB on, the metric is `marginal` if it was measured; otherwise it is
/// `loop`. A point is hollow if the cores were in the state "far".
std::string draw_chart(std::span<const Row> rows);

}  // namespace weft::bench
