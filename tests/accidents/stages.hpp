#pragma once
/// Stages the accidents and odd habits of accident_app's workers.

#include <weft/job/config.hpp>
#include <weft/train/train_context.hpp>

/// Stages what config["mode"] names. Returns at the point at which the accident lets the loop end.
void run_stage(weft::TrainContext& ctx, const weft::Config& config);

/// Prints "staged" and doesn't return.
[[noreturn]] void stay_here();

/// Keeps a core busy for this number of seconds.
void work_for(double seconds);
