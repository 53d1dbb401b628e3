#pragma once
/// Where in the program the steps of plans come from.

#include <map>
#include <string>
#include <string_view>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

struct StepText {
  std::string_view op{};     ///< "dot_general", "all_reduce 'fc1.weight.grad'"
  std::string_view place{};  ///< "digits.cpp:36"; "": unknown
};

/// Of the text of a `plan_step`.
StepText split_step_text(std::string_view text);

/// The places of collectives, by the text of `enter`: of those that follow a step of a plan in any
/// chip's events.
std::map<std::string_view, std::string_view> places_of_calls(const Snapshot& job);

}  // namespace weft
