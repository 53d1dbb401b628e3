#pragma once
/// For applications that have CAF actors of their own: CAF actors that call weft's actors, and that
/// watch a job. This header uses the application's CAF, 0.17 or 1.x, which needn't be the version
/// that libweft.so has inside. No other public header names CAF.

#include <weft/caf/caf_actor.hpp>
#include <weft/caf/caf_error.hpp>
#include <weft/caf/job_events.hpp>
