#include "inspect/systems/system_jobs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "inspect/snapshot/snapshot_reader.hpp"
#include "inspect/views/actor_view.hpp"
#include "transport/job/job_folder.hpp"

namespace weft {
namespace {

std::vector<LoopRowWait> waits_for_rows(const Snapshot& snapshot) {
  std::vector<LoopRowWait> waits;
  for (const ActorRow& row : snapshot.rows) {
    if (row.kind != ActorKind::worker || row.state != ActorState::loading) continue;
    const RowStream* stream = snapshot.streams.rows_of(row.inside);
    if (stream == nullptr) continue;
    waits.push_back({.worker = row.worker,
                     .name = stream->name,
                     .rows = stream->rows_text(row.worker),
                     .for_s = std::max(0.0, snapshot.seconds_since(row.inside_since_ns))});
  }
  return waits;
}

SystemJob read_job(const std::string& id, std::vector<std::string>& remarks) {
  SystemJob job{.id = id, .state = "gone"};
  try {
    const Snapshot snapshot = SnapshotReader::of_job(id).read();
    const JobView view = view_job(snapshot);
    job.name = snapshot.header.name;
    job.state = view.state;
    job.step = view.step;
    job.trainer_pid = snapshot.header.trainer_pid;
    job.waits = waits_for_rows(snapshot);
    job.streams = snapshot.streams;
    for (const std::string& reason : snapshot.streams.unreadable) remarks.push_back(reason);
  } catch (const Error& error) {
    if (error.code() == Errc::not_found) return job;
    job.state = "unreadable";
    remarks.push_back(fmt::format("job {}: {}", id, error.what()));
  }
  return job;
}

}  // namespace

void add_jobs(SystemSnapshot& system) {
  for (const SystemMesh& mesh : system.meshes) {
    if (mesh.has_ended || !is_job_id(mesh.job)) continue;
    if (std::ranges::find(system.jobs, mesh.job, &SystemJob::id) != system.jobs.end()) continue;
    system.jobs.push_back(read_job(mesh.job, system.remarks));
  }
}

}  // namespace weft
