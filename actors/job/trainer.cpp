#include <weft/train/trainer.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "actors/agent/agent_run.hpp"
#include "actors/job/fit_on_hosts.hpp"
#include "actors/job/job_control.hpp"
#include "actors/job/job_request.hpp"
#include "actors/job/job_run.hpp"
#include "actors/job/launch_mesh.hpp"
#include "actors/job/nameless_fit.hpp"
#include "actors/job/validate.hpp"
#include "actors/launch/foreign_launch.hpp"
#include "actors/launch/launch_variables.hpp"
#include "actors/launch/start_place.hpp"
#include "actors/launch/weft_copies.hpp"
#include "actors/launch/worker_entry.hpp"
#include "actors/process/elf_object.hpp"
#include "actors/process/failure.hpp"
#include "actors/process/surroundings.hpp"
#include "actors/protocol/first_plan.hpp"
#include "actors/worker/worker_context.hpp"

namespace weft {
namespace {

/// The effectively infinite time limit for workers that run in a debugger.
constexpr double kNoLimitSeconds = 1e6;

std::string text_of(const std::source_location& where) {
  const std::string_view file = where.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), where.line());
}

/// Opens closed standard streams. Otherwise the next file that the job opens would become stdout.
void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
  }
}

/// The loop that a job runs, the options, and the identity of the fit() call.
struct What {
  const Loop* named;  ///< null: `nameless` is used
  const TrainLoop& nameless;
  const TrainerOptions& options;
  LoopIdentity identity;
  std::string site;  ///< the source line of the fit() or start() call
  int number;        ///< number of the call in this process, from 1
};

int next_number() {
  static std::atomic<int> calls{0};
  return ++calls;
}

void require_outside_a_loop(const std::string& site) {
  if (const auto inside = site_of_this_threads_loop()) {
    fail(Errc::invalid_argument,
         "fit() at {} was called inside the training loop of the job of {}, whose chips wait "
         "for that loop: return from the loop first, or start the other job on a thread of its own",
         site, *inside);
  }
}

/// Returns the identity by which a worker process finds a loop with a name. Keeps the object file
/// that contains the loop loaded from now on, because the job runs its code.
LoopIdentity identity_of(const Loop& loop, const TrainerOptions& options) {
  loop.require_findable();
  loop.check(options.loop_config);
  LoopIdentity identity{
      .name = loop.name(), .site = loop.site(), .config_digest = digest_of(options.loop_config)};
  if (const auto object = object_of(loop.address())) {
    identity.object = object->path;
    identity.build = object->build;
    if (!object->path.empty()) {
      ::dlopen(object->path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    }
  }
  return identity;
}

void require_worker_main(const Loop& loop, const TrainerOptions& options) {
  if (called_worker_main() || !options.scaling.worker_executable.empty()) return;
  fail(
      Errc::invalid_argument,
      "loop \"{}\" with scaling.num_workers = {}: its worker processes begin in this program's "
      "main(), which doesn't call weft::worker_main(): add `weft::worker_main(argc, argv);` as its "
      "first line, or set scaling.worker_executable (docs/embedding.md)",
      loop.name(), options.scaling.num_workers);
}

/// Makes an absent loop config an empty object, so that a loop can always ask it for keys.
TrainerOptions with_config(TrainerOptions options) {
  if (options.loop_config.is_null()) options.loop_config = Config::object();
  return options;
}

/// Returns whether WEFT_EAGER makes the program's jobs eager (RunConfig::debug).
bool is_eager_wanted() {
  const char* text = std::getenv("WEFT_EAGER");
  return text != nullptr && *text != '\0' && std::string_view(text) != "0";
}

/// Calls validate() and adds the call's source line to its errors.
JobSpec validated(const TrainerOptions& options, const HostPlace& place, const std::string& site) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename().string();
  try {
    return validate(options, program, place);
  } catch (const Error& error) {
    fail(error.code(), "fit() at {}: {}", site, error.what());
  }
}

/// Returns this process's place, and adapts the options to the launcher that has started it. Ends
/// the process if it isn't one of the job's hosts. If an actor system uses the hosts, the job is on
/// one host.
HostPlace take_place(ScalingConfig& scaling) {
  if (have_actors_the_hosts()) return {};
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  const auto launch = foreign_launch(variable);
  HostPlace place = start_place(launch, variable);
  if (launch) obey_foreign_launch(*launch, place, scaling);
  return place;
}

JobRequest request_of(What what) {
  TrainerOptions options = what.options;
  const HostPlace place = take_place(options.scaling);
  apply_launch_variables(options.scaling, options.run, what.number);
  apply_launch_mesh(options.backend.spmd);
  if (is_eager_wanted()) options.run.debug = DebugMode::eager;
  if (const std::string folder = plan_folder(); !folder.empty()) {
    options.run.storage_path = folder;
  }
  JobRequest request{.spec = validated(options, place, what.site),
                     .fit_number = what.number,
                     .loop = std::move(what.identity),
                     .loop_config = {},
                     .local = {},
                     .nameless = nullptr,
                     .command = nullptr,
                     .callbacks = options.run.callbacks,
                     .validation = options.run.validation,
                     .output = options.run.output,
                     .on_worker_report = options.run.on_worker_report};
  request.handles_signals = options.run.handle_signals.value_or(true);
  request.chains_signals = options.run.chain_signals;
  Config::to_cbor(options.loop_config, request.loop_config);
  if (options.scaling.num_workers == 0) {
    const Config& config = options.loop_config;
    if (const Loop* named = what.named) {
      request.local = [named, config](TrainContext& ctx) { return named->run(ctx, config); };
    } else {
      request.local = [loop = what.nameless, config](TrainContext& ctx) {
        return loop(ctx, config);
      };
    }
    return request;
  }
  if (what.named == nullptr && options.actors != nullptr) {
    fail(Errc::invalid_argument,
         "fit() at {}: TrainerOptions::actors is set and the loop has no name, so each of the {} "
         "worker processes would run main() again and make an actor system of its own; give the "
         "loop a name: `static weft::Loop train_loop{{\"train\", train}};` at namespace scope",
         what.site, options.scaling.num_workers);
  }
  if (what.named != nullptr) {
    require_worker_main(*what.named, options);
  } else {
    request.nameless = std::make_shared<const NamelessFit>(what.nameless, request.loop);
  }
  request.command = std::make_shared<const WorkerCommand>(options.scaling, what.named != nullptr);
  if (request.command->is_wrapped()) {
    request.spec.timeout_s = kNoLimitSeconds;
    request.spec.hang_timeout_s = 0;
    request.spec.hang_warning_s = 0;
  }
  if (request.command->is_other_executable() && request.loop.object.empty()) {
    request.loop.build.clear();  // the other executable is a different build
  }
  return request;
}

AgentJob agent_job_of(const JobRequest& request) {
  return {.spec = request.spec,
          .loop = request.loop,
          .command = *request.command,
          .handles_signals = request.handles_signals,
          .chains_signals = request.chains_signals,
          .logs_to_console = request.logs_to_console,
          .fit_number = request.fit_number};
}

Result run_to_end(const JobRequest& request, std::stop_token stop, const std::string& site) {
  JobControl control;
  const std::stop_callback on_stop(std::move(stop), [&] {
    control.stop(fmt::format("the stop token of fit() at {} was triggered", site));
  });
  return run_job(request, control);
}

/// Runs the job to its end and records its outcome for the workers of later jobs.
Result fit_or_note(const What& what, std::stop_token stop) {
  // The request lives until the outcome is noted, because its end lets other nameless fit() calls
  // begin.
  std::optional<JobRequest> request;
  try {
    request = request_of(what);
    if (request->spec.place.is_agent()) return fit_as_agent(agent_job_of(*request), what.site);
    const HostsTaken hosts(request->spec, what.site);
    request->sets_variables = request->spec.num_workers == 0;
    Result result = run_to_end(*request, std::move(stop), what.site);
    // `weft plan` needs only the program's first plan.
    if (result.error && has_first_plan(plan_folder())) end_worker_process(0);
    note_result(what.identity, what.number, result);
    return result;
  } catch (const Error& e) {
    note_thrown(what.identity, what.number, e.code(), e.what());
    throw;
  } catch (const std::exception& e) {
    note_thrown(what.identity, what.number, Errc::loop_failed, e.what());
    throw;
  } catch (...) {
    note_thrown(what.identity, what.number, Errc::loop_failed,
                describe(std::current_exception()).message);
    throw;
  }
}

}  // namespace

Trainer::Trainer(const Loop& loop, TrainerOptions options)
    : named_(&loop), loop_([](TrainContext&) {}), options_(with_config(std::move(options))) {}

Trainer::Trainer(TrainLoop loop, TrainerOptions options)
    : loop_(std::move(loop)), options_(with_config(std::move(options))) {}

Result Trainer::fit(std::stop_token stop, std::source_location where) {
  const std::string site = text_of(where);
  require_surroundings(site);
  require_outside_a_loop(site);
  require_own_weft();
  open_standard_streams();
  if (named_ == nullptr && !loop_) {
    fail(Errc::invalid_argument, "the loop is empty: give Trainer a function");
  }
  const What what{named_,
                  loop_,
                  options_,
                  named_ != nullptr ? identity_of(*named_, options_)
                                    : identity_of(loop_, options_.loop_config, site),
                  site,
                  next_number()};
  if (const auto& worker = this_worker(); worker && worker->loop.empty()) {
    return pass_or_become_worker(*worker, loop_, options_.loop_config, what.identity);
  }
  return fit_or_note(what, std::move(stop));
}

Job Trainer::start(std::source_location where) {
  const std::string site = text_of(where);
  require_surroundings(site);
  require_outside_a_loop(site);
  require_own_weft();
  open_standard_streams();
  if (named_ == nullptr && options_.scaling.num_workers != 0) {
    fail(Errc::invalid_argument,
         "start() at {} with scaling.num_workers = {}: its worker processes would run main() "
         "again and could not know the result of this job; give the loop a name, `static "
         "weft::Loop train_loop{{\"train\", train}};` at namespace scope, and call "
         "weft::worker_main(argc, argv) first in main()",
         site, options_.scaling.num_workers);
  }
  if (const auto& worker = this_worker(); worker && worker->loop.empty()) {
    fail(Errc::invalid_argument,
         "start() at {} was called in worker {} of a job whose loop has no name, so main() "
         "runs again in that worker: give that loop a name too",
         site, worker->process_index);
  }
  JobRequest request =
      request_of({named_, loop_, options_,
                  named_ != nullptr ? identity_of(*named_, options_)
                                    : identity_of(loop_, options_.loop_config, site),
                  site, next_number()});
  request.handles_signals = options_.run.handle_signals.value_or(false);
  request.logs_to_console = false;
  if (request.spec.place.is_agent()) {
    end_between_jobs();
    end_worker_process(run_agent(agent_job_of(request)).code);
  }
  HostsTaken hosts(request.spec, site);
  Job job = Job::start(std::move(request));
  hosts.keep();
  return job;
}

}  // namespace weft
