#pragma once
/// Looks into a run: metrics, logs, values that are not finite, layouts of tensors.

#include <weft/inspect/debug.hpp>
#include <weft/inspect/log.hpp>
#include <weft/inspect/metrics.hpp>
