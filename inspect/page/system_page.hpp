#pragma once
/// SystemPage: makes the data of actor systems for the page of `weft inspect serve` and for
/// Prometheus.

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "inspect/systems/system_snapshot.hpp"
#include "inspect/why/why.hpp"

namespace weft {

/// Returns a row for each actor of the systems that hasn't ended, like the rows of page_state() for
/// a job's actors.
nlohmann::json page_actors(std::span<const SystemSnapshot> systems);

/// Returns the page's data for a system, like page_state() for a job.
std::string system_page_state(const SystemSnapshot& system, const Why& why);

/// Returns the stack of an actor's thread, like stack_json(). Reads the stack during the call.
std::string system_stack_json(const SystemSnapshot& system, const std::string& actor);

/// Returns the metrics of the systems in Prometheus' text format; "" if there are no systems.
std::string system_metrics_text(std::span<const SystemSnapshot> systems);

}  // namespace weft
