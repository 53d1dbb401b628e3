#include "spmd/tensor/compile_cache.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <weft/tensor/error.hpp>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/tensor/node.hpp"
#include "spmd/text/difference.hpp"

namespace weft {
namespace {

/// The number of programs per site that are kept for comparison. A site often has four: for
/// training and its last batch, and for evaluation and its last batch.
constexpr std::size_t kHistoryLength = 4;

/// The number of first recompiles of a site that are all reported. Later, only the 10th, the 100th
/// and so on are reported.
constexpr int kRecompilesSaid = 3;

int next_said(int number) {
  int next = 10;
  while (next <= number) next *= 10;
  return next;
}

bool is_said(int number) { return number <= kRecompilesSaid || next_said(number - 1) == number; }

std::string join(const std::vector<std::string>& causes) {
  std::string text;
  for (const std::string& cause : causes) text += (text.empty() ? "" : "; ") + cause;
  return text;
}

std::vector<std::string> nearest_causes(const std::deque<Program>& befores,
                                        const Program& program) {
  std::optional<Differences> nearest;
  for (const Program& before : befores) {
    Differences found = differences(before, program);
    if (!nearest || found.distance <= nearest->distance) nearest = std::move(found);
  }
  return std::move(nearest->causes);
}

/// Returns whether a plan can run the program. For each input, the program must request the layout
/// that was requested when the plan was made (`asked`), or the layout that the plan gave the input.
bool serves(std::span<const Sharding> asked, const Program& plan, const Program& program) {
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const Sharding& wanted = program.inputs[i].sharding;
    const bool settled = wanted.open_mask == 0 && wanted.same_layout(plan.inputs[i].sharding);
    if (wanted != asked[i] && !settled) return false;
  }
  return true;
}

}  // namespace

Fingerprint graph_key(Program program) {
  for (ProgramInput& input : program.inputs) input.sharding = {};
  for (ProgramOutput& output : program.outputs) {
    if (output.updates >= 0) output.sharding = {};
  }
  return fingerprint(program);
}

const CompileCache::Entry* CompileCache::find(const Program& program, const Fingerprint& key) {
  if (const auto found = by_key_.find(key); found != by_key_.end()) return &found->second->entry;
  const auto [begin, end] = by_graph_.equal_range(graph_key(program));
  const auto serving = std::find_if(begin, end, [&](const auto& candidate) {
    return serves(candidate.second.asked, candidate.second.entry.plan->program, program);
  });
  if (serving == end) return nullptr;
  by_key_.emplace(key, &serving->second);
  return &serving->second.entry;
}

std::optional<std::string> CompileCache::explain(const Program& program, const RunSite& site) {
  if (site.function.empty()) return std::nullopt;
  const std::string place = fmt::format("{} at {}", site.function, file_line(site.loc));
  History& history = sites_[place];
  if (history.count == 0) {
    ++history.count;
    history.last.push_back(program);
    return std::nullopt;
  }
  const std::string causes = site.numbers_changed.empty()
                                 ? join(nearest_causes(history.last, program))
                                 : site.numbers_changed;
  if (site.max_programs > 0 && history.count >= site.max_programs) {
    fail(Errc::invalid_argument, "{}: max_programs = {}, but another program is needed: {}", place,
         site.max_programs, causes);
  }
  const int number = history.count++;
  if (site.num_numbers == 0) history.last.push_back(program);
  if (history.last.size() > kHistoryLength) history.last.pop_front();
  if (!is_said(number)) return std::nullopt;
  std::string text = fmt::format("recompile #{} for the {}: {}", number, place, causes);
  if (number >= kRecompilesSaid) {
    text += fmt::format(
        "; the next reported recompile of this line is #{}; UncachedCompile in metrics_report() "
        "counts all",
        next_said(number));
  }
  return text;
}

const CompileCache::Entry& CompileCache::add(const Program& program, const Fingerprint& key,
                                             const Entry& entry) {
  Compiled compiled{.asked = {}, .entry = entry};
  for (const ProgramInput& input : program.inputs) compiled.asked.push_back(input.sharding);
  const auto added = by_graph_.emplace(graph_key(program), std::move(compiled));
  by_key_.emplace(key, &added->second);
  return added->second.entry;
}

}  // namespace weft
