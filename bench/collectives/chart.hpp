#pragma once
/// What was measured, as a picture.

#include <span>
#include <string>

#include "bench/collectives/measure.hpp"

namespace weft::bench {

/// An SVG document with two plots per op of several sizes: time against size, and how much of the
/// limit each implementation reaches. Each in its best setting, by marginals from 64 KiB up, where
/// there are any, and loops below; a point is hollow where the cores were far apart.
std::string draw_chart(std::span<const Row> rows);

}  // namespace weft::bench
