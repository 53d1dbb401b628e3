#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "data/files/utf8.hpp"
#include "inspect/programs/chip_memory.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/why/words.hpp"
#include "spmd/plan/step_cost.hpp"
#include "tools/weft/plan/first_step.hpp"
#include "tools/weft/plan/tiers_text.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr std::ptrdiff_t kLargestCount = 5;

/// A kind of collective in a step: the same operation and size over the same axes. `count` says how
/// often the step has it.
struct Collectives {
  CollectiveSummary first;
  int count = 0;
  int group = 1;
  double seconds = 0;  ///< the predicted time of all of them together
};

std::vector<Collectives> collectives_of(const FirstStep& step, const HostSpeed& speed) {
  const Mesh mesh = mesh_of(step.plan);
  std::vector<Collectives> all;
  for (const CollectiveSummary& one : collectives(step.plan, mesh)) {
    auto found = std::ranges::find_if(all, [&](const Collectives& known) {
      return known.first.kind == one.kind && known.first.axes == one.axes &&
             known.first.bytes == one.bytes;
    });
    if (found == all.end()) {
      all.push_back({.first = one, .group = static_cast<int>(mesh.count(one.atoms))});
      found = std::prev(all.end());
    }
    ++found->count;
    found->seconds += predicted_seconds(one, found->group, mesh.size(), speed);
  }
  return all;
}

std::vector<ChipTensor> largest(const Plan& plan) {
  std::vector<ChipTensor> tensors = tensors_of(plan);
  if (std::ssize(tensors) > kLargestCount)
    tensors.erase(tensors.begin() + kLargestCount, tensors.end());
  return tensors;
}

std::string memory_table(const FirstStep& step, const HostRoom& room) {
  const ChipMemory memory = memory_of(step.plan, step.keeps_state);
  Table table({{"memory of a chip"}, columns::kSize});
  table.add({"inputs", bytes_text(memory.inputs)});
  table.add({step.keeps_state ? "second versions, to continue after a loss" : "outputs",
             bytes_text(memory.versions)});
  table.add({"temporaries", bytes_text(memory.temporaries)});
  table.add({"needed", bytes_text(memory.total())});
  const int chips = step.num_workers * step.chips_per_worker;
  table.add({fmt::format("free (/dev/shm, for {} chips)", chips),
             bytes_text(static_cast<std::int64_t>(room.shm_free_bytes) / std::max(chips, 1))});
  return table.to_string() + '\n';
}

std::string collectives_table(const FirstStep& step, const HostRoom& room) {
  const bool has_tiers = has_hosts(mesh_of(step.plan));
  std::vector<Column> all{{"collectives of a step"}, {"axes"}};
  if (has_tiers) all.push_back(kTier);
  all.insert(all.end(), {columns::kChips, columns::kTimes, columns::kSize});
  if (has_tiers) all.insert(all.end(), {kSentByHost, kOrderOfSums});
  all.insert(all.end(), {{"predicted", Align::right}, {"of"}});
  Table table(all);
  double seconds = 0;
  for (const Collectives& row : collectives_of(step, room.speed)) {
    seconds += row.seconds;
    std::vector<std::string> cells{std::string(to_string(row.first.kind)),
                                   fmt::format("{}", fmt::join(row.first.axes, ","))};
    if (has_tiers) cells.emplace_back(to_string(row.first.tier));
    cells.insert(cells.end(), {std::to_string(row.group), std::to_string(row.count),
                               bytes_text(row.first.bytes)});
    if (has_tiers) {
      cells.push_back(bytes_text(row.first.dcn_bytes));
      cells.emplace_back(order_of_sums(row.first));
    }
    cells.insert(cells.end(), {time_text(row.seconds), row.first.value});
    table.add(std::move(cells));
  }
  return table.to_string() +
         fmt::format(
             "together they take {} of a step, if memory is as fast as now ({:.1f} GB/s)\n"
             "\n",
             time_text(seconds), room.speed.copy_bytes_per_second / 1e9);
}

/// Returns, for each mesh axis, the groups of chips that communicate over it.
std::string groups_text(const Mesh& mesh) {
  std::string text;
  for (std::size_t i = 0; i < mesh.shape().size(); ++i) {
    text += fmt::format("{}{} groups of {} over \"{}\"", i == 0 ? "" : ", ",
                        mesh.size() / mesh.shape()[i], mesh.shape()[i], mesh.axis_names()[i]);
  }
  return text + '\n';
}

}  // namespace

std::string to_text(const FirstStep& step, const HostRoom& room) {
  const Mesh mesh = mesh_of(step.plan);
  const int chips = step.num_workers * step.chips_per_worker;
  std::string text = fmt::format("first step: {}\n", visible(step.site));
  text +=
      fmt::format("{} workers x {} chips; mesh {}\n{}\n{}", step.num_workers, step.chips_per_worker,
                  mesh.to_string() + hosts_text(mesh), mesh.grid(), groups_text(mesh));
  text += fmt::format("{} threads of chips on {} cores{}\n\n", chips, room.speed.cores,
                      chips > room.speed.cores ? ": they take turns" : "");
  const StepCost cost = run_cost(step.plan, mesh);
  text += fmt::format("a step on a chip: {:.4g} MFLOP, {:.2f} MiB read and {:.2f} MiB written\n\n",
                      static_cast<double>(cost.flops) / 1e6,
                      static_cast<double>(cost.read_bytes) / (1 << 20),
                      static_cast<double>(cost.written_bytes) / (1 << 20));
  text += memory_table(step, room);
  text += collectives_table(step, room);
  if (has_hosts(mesh)) text += tiers_text(cost.dcn_bytes);
  Table table({{"largest tensors"}, columns::kType, columns::kOnAChip, columns::kSize});
  for (const ChipTensor& tensor : largest(step.plan)) {
    table.add({tensor.name, tensor.global.to_string(), tensor.chip.to_string(),
               bytes_text(tensor.chip.bytes())});
  }
  text += table.to_string() + '\n';
  text += fmt::format("compiled in {} at each start{}\n", time_text(step.compile_seconds),
                      room.compile_cache.empty()
                          ? ": WEFT_COMPILE_CACHE=FOLDER keeps the plan for the next start"
                          : fmt::format(" with another build or shape: {} keeps the plan",
                                        visible(room.compile_cache)));
  for (const std::string& why : contradictions(step, room)) text += "refused: " + why + '\n';
  return text;
}

std::string to_json(const FirstStep& step, const HostRoom& room) {
  const ChipMemory memory = memory_of(step.plan, step.keeps_state);
  const Mesh mesh = mesh_of(step.plan);
  const StepCost cost = run_cost(step.plan, mesh);
  Json json{{"schema", "weft.plan/1"},
            {"site", step.site},
            {"workers", step.num_workers},
            {"chips_per_worker", step.chips_per_worker},
            {"cores", room.speed.cores},
            {"mesh", mesh_json(mesh)},
            {"chip_bytes",
             {{"inputs", memory.inputs},
              {"versions", memory.versions},
              {"temporaries", memory.temporaries},
              {"needed", memory.total()}}},
            {"chip_flops", cost.flops},
            {"chip_read_bytes", cost.read_bytes},
            {"chip_written_bytes", cost.written_bytes},
            {"shm_free_bytes", room.shm_free_bytes},
            {"compile_seconds", step.compile_seconds},
            {"refused", contradictions(step, room)},
            {"collectives", Json::array()},
            {"largest", Json::array()}};
  for (const Collectives& row : collectives_of(step, room.speed)) {
    json["collectives"].push_back({{"kind", to_string(row.first.kind)},
                                   {"axes", row.first.axes},
                                   {"group", row.group},
                                   {"count", row.count},
                                   {"bytes", row.first.bytes},
                                   {"predicted_s", row.seconds},
                                   {"of", row.first.value}});
    if (has_hosts(mesh)) json["collectives"].back().update(tier_json(row.first));
  }
  for (const ChipTensor& tensor : largest(step.plan)) {
    json["largest"].push_back({{"name", tensor.name},
                               {"type", tensor.global.to_string()},
                               {"chip_type", tensor.chip.to_string()},
                               {"chip_bytes", tensor.chip.bytes()}});
  }
  return json_text(json);
}

}  // namespace weft
