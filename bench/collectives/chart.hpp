#pragma once
/// Draws results as a picture.

#include <span>
#include <string>

#include "bench/collectives/measure.hpp"

namespace weft::bench {

/// Returns an SVG document. Each op measured at several sizes has two plots: time against size, and
/// the share of the limit that each implementation reaches. Each implementation is shown in its
/// best setting; from 64 KiB on by marginals if there are any, below that by loops. A point is
/// hollow if the cores were far apart.
std::string draw_chart(std::span<const Row> rows);

}  // namespace weft::bench
