#include "inspect/history/call_places.hpp"

namespace weft {

/// Splits the text at its last " at ". A text that ends with a quote has no place, because its last
/// " at " is part of a quoted name.
StepText split_step_text(std::string_view text) {
  constexpr std::string_view kAt = " at ";
  const std::size_t at = text.rfind(kAt);
  if (at == std::string_view::npos || text.ends_with('\'')) return {text, {}};
  return {text.substr(0, at), text.substr(at + kAt.size())};
}

std::map<std::string_view, std::string_view> places_of_calls(const Snapshot& job) {
  std::map<std::string_view, std::string_view> places;
  for (const EventRing& ring : job.rings) {
    const Event* before = nullptr;
    for (const Event& event : ring.events) {
      if (event.kind == EventKind::enter && before != nullptr &&
          before->kind == EventKind::plan_step) {
        const std::string_view place = split_step_text(before->text).place;
        if (!place.empty()) places.emplace(event.text, place);
      }
      before = &event;
    }
  }
  return places;
}

}  // namespace weft
