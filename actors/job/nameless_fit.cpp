#include "actors/job/nameless_fit.hpp"

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include <weft/tensor/error.hpp>

#include "actors/data/run_folder.hpp"
#include "actors/host/job_place.hpp"
#include "actors/launch/worker_entry.hpp"
#include "actors/process/elf_object.hpp"
#include "actors/worker/worker.hpp"
#include "data/files/envelope.hpp"

namespace weft {
namespace {

using Json = Config;

/// The time for which a thread waits until another thread has made the job's fit() call. The main
/// thread doesn't wait.
constexpr std::chrono::seconds kParkedPatience{5};

/// A fit() call that has ended. `outcome` is the run's folder, or "!code message" for an error.
struct EndedFit {
  LoopIdentity identity;
  std::string outcome;
  int number = 0;  ///< number of the call in this process; unset in a worker
};

std::mutex mutex;
std::vector<EndedFit> ended;  ///< guarded by mutex; in a worker: the trainer's calls
/// In a worker: the calls that this process has made, as indices in `ended`. Guarded by mutex.
std::set<std::size_t> passed_fits;
std::atomic_flag nameless_runs;  ///< set while a job of a loop without a name runs with processes
std::atomic_flag is_worker;      ///< set once a thread of this process runs the job's loop

Json to_json(const LoopIdentity& identity) {
  return {{"site", identity.site},
          {"type", identity.type},
          {"offset", identity.offset},
          {"config", identity.config_digest}};
}

LoopIdentity parse_identity(const Json& json) {
  return {.site = json.at("site"),
          .type = json.at("type"),
          .offset = json.at("offset"),
          .config_digest = json.at("config")};
}

bool are_same(const LoopIdentity& a, const LoopIdentity& b) {
  return a.site == b.site && a.type == b.type && a.offset == b.offset &&
         a.config_digest == b.config_digest;
}

std::string demangled(const std::string& type) {
  int status = 0;
  char* name = abi::__cxa_demangle(type.c_str(), nullptr, nullptr, &status);
  const std::string text = status == 0 ? name : type;
  std::free(name);
  return text;
}

/// Returns "fit() #2 at train.cpp:40 (loop of main::{lambda()#1}, config 8f3a...)".
std::string identity_text(const LoopIdentity& identity, std::size_t number) {
  return fmt::format("fit() #{} at {} (loop of {}{}, config {:.8})", number, identity.site,
                     demangled(identity.type),
                     identity.offset == 0 ? "" : fmt::format(" at +{:#x}", identity.offset),
                     identity.config_digest);
}

/// The fit() call that started the job. fits_of() reads it and `ended` from a file of the trainer,
/// only once, because the file is removed with the job.
struct WorkerFits {
  LoopIdentity job;
};
const WorkerFits& fits_of(const WorkerEnvironment& environment) {
  static const WorkerFits fits = [&] {
    const std::string path = environment.fits_path();
    std::ifstream file(path);
    const Json json = Json::parse(file, nullptr, false);
    if (json.is_discarded()) {
      fail(Errc::io, "WEFT_JOB_FOLDER: can't read {}", path);
    }
    for (const Json& fit : json.at("ended")) {
      ended.push_back({parse_identity(fit.at("fit")), fit.at("outcome")});
    }
    return WorkerFits{parse_identity(json.at("job"))};
  }();
  return fits;
}

bool is_main_thread() { return ::gettid() == ::getpid(); }

/// Makes this process a worker, and ends it after the loop. If another thread has already made it a
/// worker, waits until the process ends.
[[noreturn]] void become_worker(const WorkerEnvironment& environment, const ResolveLoop& resolve) {
  if (is_worker.test_and_set()) {
    for (;;) ::pause();
  }
  begin_worker_output();
  end_worker_process(run_worker_process(environment, resolve));
}

void note(const LoopIdentity& identity, int number, std::string outcome) {
  const std::lock_guard lock(mutex);
  ended.push_back({identity, std::move(outcome), number});
}

}  // namespace

std::string digest_of(const Config& config) {
  const std::vector<std::uint8_t> bytes = Config::to_cbor(config);
  return fmt::format("{:016x}", xxh3(std::as_bytes(std::span(bytes))));
}

LoopIdentity identity_of(const TrainLoop& loop, const Config& config, std::string_view site) {
  LoopIdentity identity{
      .site = std::string(site), .type = loop.type(), .config_digest = digest_of(config)};
  if (loop.address() != nullptr) {
    const auto object = object_of(loop.address());
    const auto address = reinterpret_cast<std::uintptr_t>(loop.address());
    identity.offset = address - (object ? object->base : 0);
  }
  return identity;
}

NamelessFit::NamelessFit(const TrainLoop& loop, const LoopIdentity& identity)
    : identity_(identity) {
  if (loop.has_captures()) {
    fail(Errc::invalid_argument,
         "fit() at {} with worker processes: its loop ({}) has captures or is a std::function. "
         "main() runs again in each worker, and a worker can't distinguish this loop from one "
         "that captures other values: pass the captured values in loop_config, which fit() "
         "gives to a loop (TrainContext&, const Config&), or keep them in variables of "
         "namespace scope; or run the loop in this process (scaling.num_workers = 0)",
         identity.site, demangled(identity.type));
  }
  if (nameless_runs.test_and_set()) {
    fail(Errc::invalid_argument,
         "fit() at {}: another fit() of this process is running, and its loop has no name "
         "either: worker processes would find the wrong loop; give the loops names, `static "
         "weft::Loop train_loop{{\"train\", train}};` at namespace scope, and call "
         "weft::worker_main(argc, argv) first in main()",
         identity.site);
  }
}

NamelessFit::~NamelessFit() { nameless_runs.clear(); }

std::string NamelessFit::to_text() const {
  const std::lock_guard lock(mutex);
  Json json{{"job", to_json(identity_)}, {"ended", Json::array()}};
  for (const EndedFit& fit : ended) {
    json["ended"].push_back({{"fit", to_json(fit.identity)}, {"outcome", fit.outcome}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void note_result(const LoopIdentity& identity, int number, const Result& result) {
  note(identity, number, result.path);
}

void note_thrown(const LoopIdentity& identity, int number, Errc code, std::string_view message) {
  note(identity, number, fmt::format("!{} {}", to_string(code), message));
}

FitCalls calls_until(int number) {
  static const std::string process = random_id();
  FitCalls calls{.process = process, .number = number};
  calls.outcomes.resize(static_cast<std::size_t>(number - 1));
  const std::lock_guard lock(mutex);
  for (const EndedFit& fit : ended) {
    if (fit.number < number) calls.outcomes[static_cast<std::size_t>(fit.number - 1)] = fit.outcome;
  }
  return calls;
}

Result result_of(const std::string& outcome) {
  if (!outcome.starts_with('!')) return Result::load(outcome);
  const auto space = outcome.find(' ');
  throw Error(parse_errc(outcome.substr(1, space - 1)), outcome.substr(space + 1));
}

Result pass_or_become_worker(const WorkerEnvironment& environment, const TrainLoop& loop,
                             const Config& config, const LoopIdentity& identity) {
  std::unique_lock lock(mutex);
  const LoopIdentity job = fits_of(environment).job;
  for (std::size_t i = 0; i < ended.size(); ++i) {
    if (!are_same(ended[i].identity, identity) || !passed_fits.insert(i).second) continue;
    const std::string outcome = ended[i].outcome;
    lock.unlock();
    return result_of(outcome);
  }
  const std::size_t number = ended.size() + 1;
  const std::size_t own_number = passed_fits.size() + 1;
  lock.unlock();
  if (are_same(identity, job)) {
    become_worker(environment, [&](const Assignment&) -> BoundLoop {
      return [&](TrainContext& ctx) { return loop(ctx, config); };
    });
  }
  if (!is_main_thread()) std::this_thread::sleep_for(kParkedPatience);
  become_worker(environment, [&](const Assignment&) -> BoundLoop {
    fail(Errc::invalid_argument,
         "worker {} reached {}, but its job is {}: main() runs again in each worker and must "
         "reach the same call there; name the loop, `static weft::Loop train_loop{{\"train\", "
         "train}};` at namespace scope, and call weft::worker_main(argc, argv) first in main()",
         environment.process_index, identity_text(identity, own_number),
         identity_text(job, number));
  });
}

}  // namespace weft
