#include "inspect/programs/chip_memory.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "data/files/utf8.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/why/words.hpp"

namespace weft {

ChipMemory memory_of(const Plan& plan, bool keeps_state) {
  ChipMemory memory;
  for (const ProgramInput& input : plan.program.inputs) {
    const std::int64_t bytes = plan.program.type(input.value).bytes();
    memory.inputs += bytes;
    if (keeps_state && is_state(input.kind)) memory.versions += bytes;
  }
  for (std::size_t i = 0; i < plan.program.outputs.size(); ++i) {
    const ProgramOutput& output = plan.program.outputs[i];
    const bool is_in_place = i < plan.donated.size() && plan.donated[i];
    const bool is_version = keeps_state && output.updates >= 0;
    if (!is_in_place && !is_version) memory.versions += plan.program.type(output.value).bytes();
  }
  memory.temporaries = static_cast<std::int64_t>(plan.temp_bytes + plan.shared_bytes);
  return memory;
}

std::vector<ChipTensor> tensors_of(const Plan& plan) {
  std::vector<ChipTensor> tensors;
  for (std::size_t i = 0; i < plan.program.inputs.size(); ++i) {
    const ProgramInput& input = plan.program.inputs[i];
    tensors.push_back(
        {input.name, input.kind, plan.input_types[i], plan.program.type(input.value)});
  }
  std::ranges::stable_sort(tensors, std::ranges::greater{},
                           [](const ChipTensor& tensor) { return tensor.chip.bytes(); });
  return tensors;
}

std::string memory_text(const Snapshot& job, const JobProgram& program, const Plan& plan,
                        std::int64_t resident_bytes) {
  const ProgramEntry& entry = program.entry;
  const ChipMemory memory = memory_of(plan, entry.keeps_state);
  std::string text = fmt::format("job {}, program {}: {}\n\n", visible(job.job), entry.number,
                                 visible(entry.site));
  Table sums({{"a chip's memory"}, columns::kSize});
  sums.add({"tensors", bytes_text(memory.inputs)});
  sums.add({entry.keeps_state ? "second versions, to continue after a loss" : "outputs",
            bytes_text(memory.versions)});
  sums.add({fmt::format("temporaries (at least {} live at once)",
                        bytes_text(static_cast<std::int64_t>(plan.temp_bytes_bound))),
            bytes_text(memory.temporaries)});
  sums.add({"sum of the plan", bytes_text(memory.total())});
  sums.add({"arena: maximum size (WEFT_ARENA_BYTES)",
            bytes_text(static_cast<std::int64_t>(entry.arena_bytes))});
  text += sums.to_string();
  if (resident_bytes >= 0) {
    text += fmt::format("\nThe job's {} chips have {} of /dev/shm now.\n", job.header.num_chips,
                        bytes_text(resident_bytes));
  }
  Table table(
      {columns::kTensor, columns::kKind, columns::kType, columns::kOnAChip, columns::kSize});
  for (const ChipTensor& tensor : tensors_of(plan)) {
    table.add({tensor.name, std::string(to_string(tensor.kind)), tensor.global.to_string(),
               tensor.chip.to_string(), bytes_text(tensor.chip.bytes())});
  }
  return text + '\n' + table.to_string();
}

std::string memory_json(const Snapshot& job, const JobProgram& program, const Plan& plan,
                        std::int64_t resident_bytes) {
  const ProgramEntry& entry = program.entry;
  const ChipMemory memory = memory_of(plan, entry.keeps_state);
  nlohmann::json json{{"schema", "weft.memory/1"},
                      {"job", job.job},
                      {"program", entry.number},
                      {"site", entry.site},
                      {"chips", job.header.num_chips},
                      {"chip_bytes",
                       {{"inputs", memory.inputs},
                        {"versions", memory.versions},
                        {"temporaries", memory.temporaries},
                        {"temporaries_bound", plan.temp_bytes_bound},
                        {"needed", memory.total()},
                        {"arena", entry.arena_bytes}}},
                      {"tensors", nlohmann::json::array()}};
  json["resident_bytes"] = resident_bytes < 0 ? nlohmann::json() : nlohmann::json(resident_bytes);
  for (const ChipTensor& tensor : tensors_of(plan)) {
    json["tensors"].push_back({{"name", tensor.name},
                               {"kind", to_string(tensor.kind)},
                               {"type", tensor.global.to_string()},
                               {"chip_type", tensor.chip.to_string()},
                               {"chip_bytes", tensor.chip.bytes()}});
  }
  return json_text(json);
}

}  // namespace weft
