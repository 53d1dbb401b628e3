#include "tools/weft/inspect/systems.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "inspect/systems/system_blocks.hpp"
#include "inspect/systems/system_reader.hpp"
#include "tools/weft/inspect/job.hpp"
#include "tools/weft/inspect/past_run.hpp"

namespace weft {
namespace {

/// Returns the start time of the youngest job that can be read; 0 if there is none.
std::int64_t newest_job_ns() {
  std::int64_t newest = 0;
  for (const std::string& job : Board::jobs()) {
    try {
      newest = std::max(newest, Board::open(job, true).header().started_unix_ns);
    } catch (const Error&) {
    }
  }
  return newest;
}

/// Returns the system that was started last; nothing if none can be read.
std::optional<SystemSnapshot> newest_system() {
  std::optional<SystemSnapshot> newest;
  for (const std::string& id : actor_systems()) {
    try {
      SystemSnapshot system = read_actor_system(id);
      if (!newest || system.started_unix_ns > newest->started_unix_ns) newest = std::move(system);
    } catch (const Error&) {
    }
  }
  return newest;
}

}  // namespace

bool selects_system(const std::string& asked) {
  if (asked.find('/') != std::string::npos) return false;
  if (!asked.empty()) {
    return find_jobs(asked).empty() && !find_actor_systems(asked).empty();
  }
  const std::optional<SystemSnapshot> newest = newest_system();
  return newest && newest->started_unix_ns > newest_job_ns();
}

std::optional<SystemSnapshot> read_asked_system(const std::string& asked, int& code) {
  code = kNoSuchJob;
  if (asked.empty()) {
    auto newest = newest_system();
    if (!newest) fmt::print(stderr, "there is no actor system\n");
    code = newest ? 0 : kNoSuchJob;
    return newest;
  }
  const std::vector<std::string> found = find_actor_systems(asked);
  if (found.empty()) {
    fmt::print(stderr, "there is no actor system \"{}\": `weft inspect` lists them\n",
               visible(asked));
    return {};
  }
  if (found.size() > 1) {
    fmt::print(stderr, "\"{}\" matches {} actor systems; give more of the id: {}\n", visible(asked),
               found.size(), fmt::join(found, ", "));
    return {};
  }
  try {
    auto system = read_actor_system(found.front());
    code = 0;
    return system;
  } catch (const Error& e) {
    fmt::print(stderr, "actor system {}: {}\n", found.front(), visible(e.what()));
    if (e.code() != Errc::not_found) code = kUnreadable;
    return {};
  }
}

std::vector<SystemSnapshot> read_systems(int& code) {
  std::vector<SystemSnapshot> systems;
  for (const std::string& id : actor_systems()) {
    try {
      systems.push_back(read_actor_system(id, {.jobs = false}));
    } catch (const Error& e) {
      // The system has just ended or is just starting.
      if (e.code() == Errc::not_found) continue;
      fmt::print(stderr, "actor system {}: {}\n", id, visible(e.what()));
      code = kUnreadable;
    }
  }
  return systems;
}

void add_inspect_blocks(CLI::App& inspect, int& code) {
  struct BlocksOptions {
    std::string system;
    bool json = false;
  };
  auto options = std::make_shared<BlocksOptions>();
  CLI::App* blocks = inspect.add_subcommand(
      "blocks",
      "show which processes of an actor system hold which blocks of memory (tensors of messages)");
  blocks->add_option("system", options->system,
                     "an actor system's id, the beginning of it, or its name; default: the system "
                     "that was started last");
  blocks->add_flag("--json", options->json, "as JSON, schema weft.blocks/1 (docs/inspect.md)");
  blocks->callback([options, &code] {
    const auto system = read_asked_system(options->system, code);
    if (!system) return;
    const SystemBlocks held = read_system_blocks(*system);
    fmt::print("{}", options->json ? system_blocks_json(*system, held)
                                   : system_blocks_text(*system, held));
  });
}

}  // namespace weft
