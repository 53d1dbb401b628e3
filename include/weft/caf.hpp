#pragma once
/// For applications with CAF actors of their own: CAF actors that call weft's actors or that
/// watch a job. This header uses the application's CAF, 0.17 or 1.x; it needn't be the version
/// inside libweft.so. No other public header uses CAF.

#include <weft/caf/caf_actor.hpp>
#include <weft/caf/caf_error.hpp>
#include <weft/caf/job_events.hpp>
