#include "actors/host/host_run.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "actors/trainer/hang_text.hpp"

namespace weft {

namespace {

/// Makes or opens the job's run folder. Hosts that share no file system have one each.
RunFolder run_folder(const JobSpec& spec, const JobPlace& place,
                     const std::optional<JoinedJob>& joined) {
  if (!joined) return RunFolder(spec.storage_path, spec.name, place.id());
  std::error_code error;
  std::filesystem::create_directories(joined->run_dir, error);
  if (error) {
    fail(Errc::io,
         "can't make the run folder {} of host 0 on this host: {}; make run.storage_path writable "
         "on every host",
         joined->run_dir, error.message());
  }
  return RunFolder::open(joined->run_dir);
}

/// Returns the name of this process in the job's log.
std::string log_name(const JobSpec& spec) {
  return spec.place.is_agent() ? fmt::format("host-{}", spec.place.index) : "trainer";
}

}  // namespace

HostRun::HostRun(const JobSpec& job, Lines lines, bool logs_to_console,
                 const std::optional<JoinedJob>& joined)
    : spec(job),
      place(spec.is_rescuable() && spec.keep_for_rescue_s > 0,
            joined ? std::optional(joined->part) : std::nullopt),
      folder(run_folder(spec, place, joined)),
      board(place.make_board(spec, folder.path())),
      box(place.make_box(spec)),
      hangs(board, spec.hang_warning_s),
      memory(place.make_memory(spec)),
      log(JobLog::open({.who = log_name(spec),
                        .file = fmt::format("{}/{}.log", folder.path(), log_name(spec)),
                        .job = place.job().id,
                        .events = box.shared(-1),
                        .console = logs_to_console})),
      log_scope(log),
      processes(std::move(lines), [this](int worker) { warn_of_stack(worker, folder.path()); }) {
  if (spec.place.count > 1) place.keep_secret(spec.place.secret);
}

int HostRun::start_process(int worker, const WorkerCommand& command, const LoopIdentity& loop,
                           const std::string& address) {
  return processes.start(worker, command, place.variables_of(spec, loop, address, worker));
}

}  // namespace weft
