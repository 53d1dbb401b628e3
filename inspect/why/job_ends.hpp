#pragma once
/// The roots of a job that has ended.

#include "inspect/why/why.hpp"

namespace weft {

/// Of a job of which result.json tells the end, or whose board says that it is over.
void explain_end(const Snapshot& now, Why& why);

/// The trainer of a live job is gone, and nothing says how the job ended.
Root explain_lost_trainer(const Snapshot& now);

}  // namespace weft
