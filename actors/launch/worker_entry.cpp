#include "actors/launch/worker_entry.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

#include <weft/tensor/error.hpp>
#include <weft/train/loop.hpp>

#include "actors/join/child_process.hpp"
#include "actors/join/worker_actors.hpp"
#include "actors/process/elf_object.hpp"
#include "actors/process/job_thread.hpp"
#include "actors/protocol/abi.hpp"
#include "actors/worker/worker.hpp"

/// weft-worker calls this function in a library that it has loaded.
extern "C" __attribute__((visibility("hidden"))) void weft_worker_entry() {
  weft::worker_main(0, nullptr);
}

// Everything that is linked with weft has this ELF note: name "weft", type 1, text {abi: u32,
// entry: i32}. The entry is relative to its own address. The note can be found in any loaded
// object, regardless of symbol visibility (elf_object.hpp, tools/weft-worker).
#define WEFT_TEXT(x) #x
#define WEFT_VALUE_TEXT(x) WEFT_TEXT(x)
__asm__(
    ".pushsection .note.weft,\"a\",@note\n"
    ".balign 4\n"
    ".long 5, 8, 1\n"
    ".asciz \"weft\"\n"
    ".balign 4\n"
    ".long " WEFT_VALUE_TEXT(WEFT_ABI) "\n"
    ".long weft_worker_entry - .\n"
    ".popsection\n");

namespace weft {
namespace {

/// Set by the first call of worker_main().
std::atomic<bool> main_has_begun{false};
std::vector<std::uintptr_t>& bases_before_main() {
  static std::vector<std::uintptr_t> bases;
  return bases;
}

/// Finds the job's loop in the same object file as in the trainer's process. Throws version if this
/// process has another build of that file, and not_found if the file doesn't have the loop.
const Loop& find_loop(const LoopIdentity& identity, int worker) {
  if (identity.object.empty()) {
    const Loop* loop = Loop::find(identity.name);
    if (loop == nullptr) {
      fail(Errc::not_found,
           "there is no loop \"{}\" in worker {}; it has: {}; the Loop must be a variable of "
           "namespace scope that is linked into the worker's executable (linkers drop it from a "
           "static library unless --whole-archive is given, as weft_add_worker() does)",
           identity.name, worker, Loop::names());
    }
    // The builds are compared, not the paths, because paths may differ even for the same
    // executable.
    const auto object = object_of(loop->address());
    if (!identity.build.empty() && object && object->build != identity.build) {
      fail(Errc::version,
           "the executable with loop \"{}\" is build {:.12} in the trainer and {:.12} in worker "
           "{}: the file changed while the application ran; start the application again",
           identity.name, identity.build, object->build, worker);
    }
    return *loop;
  }
  require_build(identity.object, identity.build);
  if (Loop::find(identity.name) == nullptr &&
      ::dlopen(identity.object.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) == nullptr) {
    fail(Errc::not_found, "loop \"{}\": worker {} can't load {}: {}", identity.name, worker,
         identity.object, ::dlerror());
  }
  const Loop* loop = Loop::find(identity.name);
  if (loop == nullptr) {
    fail(Errc::not_found,
         "there is no loop \"{}\" in worker {}, which has loaded {}; it has: {}; a library "
         "with its own copy of weft needs scaling.worker_executable = weft::plugin_worker()",
         identity.name, worker, identity.object, Loop::names());
  }
  return *loop;
}

BoundLoop resolve(const Assignment& assignment, int worker) {
  const LoopIdentity& identity = assignment.loop;
  const Loop& loop = find_loop(identity, worker);
  if (loop.site() != identity.site) {
    fail(Errc::version,
         "loop \"{}\" is at {} in the trainer and at {} in worker {}: they were built from "
         "different sources; build both again",
         identity.name, identity.site, loop.site(), worker);
  }
  if (loop.options().setup != nullptr) loop.options().setup();
  return [&loop, config = Config::from_cbor(assignment.loop_config)](TrainContext& ctx) {
    return loop.run(ctx, config);
  };
}

/// Joins the actor system of TrainerOptions::actors. Returns null if there is none or it has ended.
/// Throws the errors of WorkerActors.
std::unique_ptr<WorkerActors> join_actors(const WorkerEnvironment& environment) {
  if (environment.actors.empty()) return nullptr;
  try {
    return std::make_unique<WorkerActors>(environment.actors, environment.job_id,
                                          environment.process_index);
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
    fmt::print(stderr, "weft worker {}: no actors run beside its loop: {}\n",
               environment.process_index, error.what());
    return nullptr;
  }
}

/// Finds the job's loop by its name and runs it.
[[noreturn]] void run_named_worker(const WorkerEnvironment& environment) {
  begin_worker_output();
  std::unique_ptr<WorkerActors> actors;
  const int code = run_worker_process(environment, [&](const Assignment& assignment) {
    BoundLoop loop = resolve(assignment, environment.process_index);
    actors =
        join_actors(environment);  // after the job has accepted the worker, and the loop's library
                                   // is loaded
    return loop;
  });
  actors.reset();
  end_worker_process(code);
}

}  // namespace

const std::optional<WorkerEnvironment>& this_worker() {
  static const std::optional<WorkerEnvironment> environment = [] {
    auto read = worker_environment();
    if (read) forget_worker_environment();
    return read;
  }();
  return environment;
}

bool in_worker() noexcept {
  try {
    return this_worker().has_value();
  } catch (...) {
    return true;  // if variables are incomplete, fit() reports it
  }
}

bool called_worker_main() noexcept { return main_has_begun.load(); }

bool was_loaded_before_main(const void* address) {
  if (!main_has_begun.load()) return false;
  const auto object = object_of(address);
  return object && std::ranges::count(bases_before_main(), object->base) != 0;
}

void begin_worker_output() {
  std::fflush(stdout);
  ::dup2(kWorkerStdout, STDOUT_FILENO);
  ::close(kWorkerStdout);
  ::dup2(kWorkerStdin, STDIN_FILENO);
  ::close(kWorkerStdin);
  std::clearerr(stdin);
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none).filename().string();
  if (!program.empty()) name_this_thread(program.c_str());
}

[[noreturn]] void end_worker_process(int code) {
  // The process ends at once, because destructors of main() or static objects could wait for
  // threads of the job that still run.
  std::fflush(nullptr);
  std::_Exit(code);
}

void worker_main(int, char**) {
  try {
    if (const auto child = take_child_variables()) {
      begin_worker_output();
      run_child_process(*child);
      end_worker_process(0);
    }
    const auto& worker = this_worker();
    if (worker && !worker->loop.empty()) run_named_worker(*worker);
  } catch (const std::exception& e) {
    fmt::print(stderr, "weft worker: {}\n", e.what());
    end_worker_process(1);
  }
  if (main_has_begun) return;
  bases_before_main() = loaded_bases();
  main_has_begun = true;
}

}  // namespace weft
