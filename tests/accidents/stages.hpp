#pragma once
/// The accidents and odd habits of accident_app's workers.

#include <weft/config.hpp>
#include <weft/train_context.hpp>

/// As config["mode"] says. Returns where the accident lets the loop end.
void run_stage(weft::TrainContext& ctx, const weft::Config& config);

/// Says "staged", and doesn't return.
[[noreturn]] void stay_here();

/// Takes so much time of a core.
void work_for(double seconds);
