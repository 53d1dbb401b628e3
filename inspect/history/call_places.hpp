#pragma once
/// CallPlaces: finds the lines of the user's program from which the steps of a plan come.

#include <map>
#include <string>
#include <string_view>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

struct StepText {
  std::string_view op{};     ///< "dot_general", "all_reduce 'fc1.weight.grad'"
  std::string_view place{};  ///< "digits.cpp:36"; "" if unknown
};

/// Splits the text of a `plan_step` event.
StepText split_step_text(std::string_view text);

/// Returns the place of each collective, by the text of its `enter` event. The place of a
/// collective is known if, in some chip's ring, the event of a plan's step comes right before the
/// collective's `enter` event.
std::map<std::string_view, std::string_view> places_of_calls(const Snapshot& job);

}  // namespace weft
