#include "tools/weft/inspect/why.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "inspect/systems/system_reader.hpp"
#include "inspect/systems/system_why.hpp"
#include "inspect/why/explain.hpp"
#include "tools/weft/inspect/job.hpp"
#include "tools/weft/inspect/systems.hpp"

namespace weft {
namespace {

/// The time between two snapshots. A job that isn't hung moves within it, unless its steps are
/// long.
constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr std::chrono::milliseconds kBetweenLooksAtStopped{300};
/// The number of calls of add_sights(): one for the threads that wait, one for the holders of their
/// locks, and one for the threads that hold what these holders wait for.
constexpr int kSightsMax = 3;
/// The number of snapshots that are taken to find slow workers.
constexpr int kSlowLooks = 30;
constexpr std::chrono::milliseconds kBetweenSlowLooks{10};

struct WhyArguments {
  std::string job;
  double patience_s = 0;
  bool json = false;
};

void look_for_slow(JobReader& reader, Why& why) {
  std::vector<Snapshot> looks;
  for (int i = 0; i < kSlowLooks; ++i) {
    if (i != 0) std::this_thread::sleep_for(kBetweenSlowLooks);
    looks.push_back(reader.read({.events = i + 1 == kSlowLooks}));
  }
  find_slow(why, looks);
}

/// Returns whether some process exists but is stopped (frozen).
bool stands(const Snapshot& look) {
  return std::ranges::any_of(look.processes, [](const ProcessState& process) {
    return process.frozen() && !process.gone();
  });
}

Why answer(JobReader& reader, const WhyArguments& options) {
  const Snapshot before = reader.read();
  if (!before.live || before.end || !before.held) return explain_ended(before);
  std::this_thread::sleep_for(kBetweenLooks);
  Snapshot now = reader.read({.events = true});
  if (stands(before) && stands(now)) {  // a second look distinguishes a short stop from a long one
    std::this_thread::sleep_for(kBetweenLooksAtStopped);
    now = reader.read({.events = true});
  }
  // The first call shows which threads wait for a lock, a later call what the holder of the lock
  // does.
  for (int i = 0; i < kSightsMax; ++i) reader.add_sights(now, worth_a_sight(before, now));
  Why why = explain(before, now, {.patience_s = options.patience_s});
  if (why.verdict == Verdict::well && now.live && !now.over()) look_for_slow(reader, why);
  return why;
}

/// Prints the answer. If the command line names no `kind` ("job" or "system"), the text begins with
/// the name of the one that was taken.
int print(const Why& why, const WhyArguments& options, std::string_view kind) {
  if (options.json) {
    fmt::print("{}", to_json(why));
  } else {
    if (options.job.empty()) fmt::print("{:<8} {} ({})\n", kind, visible(why.name), why.job);
    fmt::print("{}", to_text(why));
  }
  return exit_code(why.verdict);
}

int run_for_system(const WhyArguments& options) {
  int code = 0;
  const std::optional<SystemSnapshot> before = read_asked_system(options.job, code);
  if (!before) return code;
  try {
    SystemSnapshot now = *before;
    if (before->is_held) {
      std::this_thread::sleep_for(before->state() == "running" ? kBetweenLooks
                                                               : kBetweenLooksAtStopped);
      now = read_actor_system(before->id);
    }
    SystemWhyOptions limits;
    if (options.patience_s > 0) limits.patience_s = options.patience_s;
    Why why = explain_system(*before, now, limits);
    add_stacks(why);
    return print(why, options, "system");
  } catch (const Error& e) {
    say_unreadable(before->id, e);
    return e.code() == Errc::not_found ? kNoSuchJob : kUnreadable;
  }
}

}  // namespace

void add_inspect_why(CLI::App& inspect, int& code) {
  auto options = std::make_shared<WhyArguments>();
  CLI::App* why = inspect.add_subcommand(
      "why",
      "show what keeps a job or an actor system from continuing, where, and how to fix it; or how "
      "it ended");
  why->add_option("job", options->job, kJobOrSystemHelp);
  why->add_option("--patience", options->patience_s,
                  "seconds without progress that count as a hang; default: derived from the "
                  "job's steps; 5 for a function of an actor system");
  why->add_flag("--json", options->json, "as JSON, schema weft.why/2 (docs/inspect.md)");
  why->footer(
      "exit code: 0 well, 1 usage, 2 no such job, 3 a file that can't be read, 10 hung or failed,\n"
      "11 slow, 12 held in a debugger, 13 unknown");
  why->callback([options, &code] {
    code = selects_system(options->job) ? run_for_system(*options)
                                        : with_job(options->job, [&](JobReader& reader) {
                                            return print(answer(reader, *options), *options, "job");
                                          });
  });
}

}  // namespace weft
