#include "inspect/hosts/merge.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace weft {
namespace {

void put_row(std::vector<ActorRow>& rows, ActorRow row) {
  const auto at = std::ranges::lower_bound(rows, row.index, {}, &ActorRow::index);
  if (at != rows.end() && at->index == row.index) {
    *at = std::move(row);
  } else {
    rows.insert(at, std::move(row));
  }
}

void put_control(Snapshot& into, Snapshot& part) {
  if (!part.control) {
    into.no_control = part.no_control;
    return;
  }
  if (!into.control) {
    into.control = std::move(part.control);
    return;
  }
  for (std::size_t i = 0; i < part.control->chips.size() && i < into.control->chips.size(); ++i) {
    ChipControl& chip = part.control->chips[i];
    if (!chip.announced.empty()) into.control->chips[i] = std::move(chip);
  }
  if (into.control->abort_reason.empty()) {
    into.control->abort_reason = part.control->abort_reason;
  }
}

template <typename T>
void append(std::vector<T>& into, std::vector<T>& from) {
  std::ranges::move(from, std::back_inserter(into));
}

}  // namespace

void shift_times(Snapshot& part, const ClockShift& shift) {
  part.at_ns += shift.boottime_ns;
  for (ActorRow& row : part.rows) {
    for (std::int64_t* const time :
         {&row.since_ns, &row.updated_ns, &row.moved_ns, &row.inside_since_ns}) {
      if (*time != 0) *time += shift.boottime_ns;
    }
  }
  for (EventRing& ring : part.rings) {
    for (Event& event : ring.events) event.at_ns += shift.monotonic_ns;
  }
}

void merge_host(Snapshot& into, Snapshot part) {
  const int host = part.header.host;
  const auto is_own = [&](int worker) {
    return worker >= 0 && part.header.host_of(worker) == host;
  };
  // Only host 0 knows that a host is lost. The lost host's memory may still be readable, but what
  // host 0 knows of it counts.
  const bool is_host_lost = std::ranges::any_of(into.rows, [&](const ActorRow& row) {
    return is_own(row.worker) && row.state == ActorState::host_lost;
  });
  for (ActorRow& row : part.rows) {
    if (is_own(row.worker) && !is_host_lost) put_row(into.rows, std::move(row));
  }
  for (const std::string& row : part.unreadable) {
    into.unreadable.push_back(fmt::format("host {}: {}", host, row));
  }
  put_control(into, part);
  append(into.processes, part.processes);
  append(into.sights, part.sights);
  if (into.hidden.empty()) into.hidden = part.hidden;
  // Only workers' rings are added, because the rings of a host's agent would look like the
  // trainer's.
  std::erase_if(part.rings, [&](const EventRing& ring) { return !is_own(ring.worker); });
  append(into.rings, part.rings);
  append(into.waits, part.waits);
  if (part.texts == nullptr) return;
  using Owners = std::array<std::shared_ptr<const void>, 2>;
  into.texts = std::make_shared<const Owners>(Owners{std::move(into.texts), std::move(part.texts)});
}

}  // namespace weft
