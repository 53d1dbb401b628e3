#pragma once
/// Tools to look into a run: metrics, logs, searches for values that are not finite, tensor
/// layouts, steps as text for other compilers.

#include <weft/inspect/debug.hpp>
#include <weft/inspect/export_stablehlo.hpp>
#include <weft/inspect/log.hpp>
#include <weft/inspect/metrics.hpp>
