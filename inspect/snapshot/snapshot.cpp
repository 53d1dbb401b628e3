#include "inspect/snapshot/snapshot.hpp"

#include <algorithm>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

template <typename Range, typename Wanted>
auto* find_in(const Range& range, Wanted is_wanted) {
  const auto found = std::ranges::find_if(range, is_wanted);
  return found == range.end() ? nullptr : &*found;
}

}  // namespace

const ActorRow* Snapshot::trainer() const {
  return find_in(rows, [](const ActorRow& row) { return row.kind == ActorKind::trainer; });
}
const ActorRow* Snapshot::worker(int worker) const {
  return find_in(rows, [&](const ActorRow& row) {
    return row.kind == ActorKind::worker && row.worker == worker;
  });
}
const ActorRow* Snapshot::chip(int chip) const {
  return find_in(
      rows, [&](const ActorRow& row) { return row.kind == ActorKind::device && row.chip == chip; });
}
const ProcessState* Snapshot::process(HostPid id) const {
  return find_in(processes, [&](const ProcessState& process) { return process.id() == id; });
}
const ProcessSight* Snapshot::sight(HostPid id) const {
  return find_in(sights, [&](const ProcessSight& sight) {
    return HostPid{sight.host, sight.pid} == id;
  });
}
const HostSight* Snapshot::host(int number) const {
  return find_in(hosts, [&](const HostSight& sight) { return sight.host == number; });
}
std::vector<double> step_seconds(const EventRing& ring) {
  std::vector<double> seconds;
  const Event* before = nullptr;
  for (const Event& event : ring.events) {
    if (event.kind != EventKind::step) continue;
    if (before != nullptr && event.number == before->number + 1) {
      seconds.push_back((static_cast<double>(event.at_ns) - static_cast<double>(before->at_ns)) /
                        1e9);
    }
    before = &event;
  }
  return seconds;
}

const EventRing* Snapshot::loop_ring(int worker) const {
  return find_in(rings, [&](const EventRing& ring) {
    return ring.kind == RingKind::loop && ring.worker == worker;
  });
}
const EventRing* Snapshot::chip_ring(int chip) const {
  return find_in(rings, [&](const EventRing& ring) {
    return ring.kind == RingKind::chip && ring.chip == chip;
  });
}

std::optional<int> Snapshot::owner_of_thread(int host, int tid) const {
  for (const ProcessState& process : processes) {
    if (process.host != host) continue;
    if (process.pid != tid && process.thread(tid) == nullptr) continue;
    for (const ActorRow& row : rows) {
      if (row.kind == ActorKind::worker && id_of(row) == process.id()) return row.worker;
    }
    return -1;
  }
  return {};
}

std::optional<Mesh> Snapshot::mesh() const {
  if (header.mesh_shape.empty()) return {};
  try {
    return Mesh(header.mesh_shape, header.axis_names, header.device_ids, header.dcn_shape);
  } catch (const Error&) {
    return {};
  }
}

std::uint64_t Snapshot::step() const {
  std::uint64_t step = end ? end->step : 0;
  for (const ActorRow& row : rows) {
    if (row.kind == ActorKind::worker) step = std::max(step, row.step);
  }
  return step;
}

}  // namespace weft
