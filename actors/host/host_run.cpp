#include "actors/host/host_run.hpp"

#include <utility>

#include "actors/trainer/hang_text.hpp"

namespace weft {

HostRun::HostRun(const JobSpec& job, Lines lines, bool logs_to_console)
    : spec(job),
      place(spec.is_rescuable() && spec.keep_for_rescue_s > 0),
      folder(spec.storage_path, spec.name, place.id()),
      board(place.make_board(spec, folder.path())),
      box(place.make_box(spec)),
      hangs(board, spec.hang_warning_s),
      memory(place.make_memory(spec.num_chips())),
      log(JobLog::open({.who = "trainer",
                        .file = folder.path() + "/trainer.log",
                        .job = place.id(),
                        .events = box.shared(-1),
                        .console = logs_to_console})),
      log_scope(log),
      processes(std::move(lines), [this](int worker) { warn_of_stack(worker, folder.path()); }) {}

int HostRun::start_process(int worker, const WorkerCommand& command, const LoopIdentity& loop,
                           const std::string& address) {
  return processes.start(worker, command, place.variables_of(spec, loop, address, worker));
}

}  // namespace weft
