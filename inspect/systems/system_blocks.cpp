#include "inspect/systems/system_blocks.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/systems/system_mail.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

std::vector<std::uint32_t> holders_of(const LedgerRow& row) {
  std::vector<std::uint32_t> slots;
  for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
    const std::uint64_t word = row.holders[slot / 64].load(std::memory_order_relaxed);
    if ((word >> (slot % 64) & 1U) != 0) slots.push_back(slot);
  }
  return slots;
}

std::string process_text(const SystemSnapshot& system, std::uint32_t slot) {
  return fmt::format("{} (pid {})", SystemSnapshot::process_name(slot), system.pid(slot));
}

std::string size_text(std::uint64_t bytes) { return bytes_text(static_cast<std::int64_t>(bytes)); }

}  // namespace

SystemBlocks read_system_blocks(const SystemSnapshot& system) {
  SystemBlocks result;
  // Holders, and bytes of a block.
  using Key = std::pair<std::vector<std::uint32_t>, std::uint64_t>;
  // Number and bytes of held blocks, by slot.
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> held;
  std::map<std::uint32_t, std::uint64_t> foreign;  // bytes of held blocks of other heaps, by slot
  for (const SystemProcess& process : system.processes) {
    const std::uint32_t owner = process.peer.slot;
    ProcessBlocks own{.slot = owner};
    std::map<Key, std::vector<std::uint32_t>> groups;
    try {
      const std::optional<SystemMail> mail = SystemMail::open(system.id, process.peer);
      if (!mail) continue;
      own.heap_bytes = mail->heap_bytes();
      mail->for_each_block([&](std::uint32_t index, const LedgerRow& row) {
        // The row may be wrong, but no block is longer than its heap.
        const std::uint64_t bytes =
            std::min(row.bytes.load(std::memory_order_relaxed), own.heap_bytes);
        ++own.made_blocks;
        own.made_bytes += bytes;
        std::vector<std::uint32_t> holders = holders_of(row);
        for (const std::uint32_t slot : holders) {
          ++held[slot].first;
          held[slot].second += bytes;
          if (slot != owner) foreign[slot] += bytes;
        }
        if (!holders.empty()) groups[{std::move(holders), bytes}].push_back(index);
      });
    } catch (const Error& error) {
      result.remarks.emplace_back(error.what());
    }
    for (auto& [key, blocks] : groups) {
      result.held.push_back({.owner = owner,
                             .holders = key.first,
                             .block_bytes = key.second,
                             .blocks = std::move(blocks)});
    }
    result.processes.push_back(own);
  }
  for (ProcessBlocks& process : result.processes) {
    process.held_blocks = held[process.slot].first;
    process.held_bytes = held[process.slot].second;
    process.foreign_bytes = foreign[process.slot];
  }
  std::ranges::stable_sort(result.held, std::ranges::greater(), [](const HeldBlocks& group) {
    return group.block_bytes * group.blocks.size();
  });
  return result;
}

std::string system_blocks_text(const SystemSnapshot& system, const SystemBlocks& blocks) {
  Table processes(
      {columns::kProcess, columns::kHolds, columns::kBlocks, columns::kForeign, columns::kHeap});
  for (const ProcessBlocks& process : blocks.processes) {
    processes.add(
        {process_text(system, process.slot), size_text(process.held_bytes),
         std::to_string(process.held_blocks), size_text(process.foreign_bytes),
         fmt::format("{} of {}", size_text(process.made_bytes), size_text(process.heap_bytes))});
  }
  std::string text = processes.to_string();
  if (blocks.held.empty()) {
    text += "\nno process holds a block\n";
  } else {
    Table held(
        {columns::kHeapOf, columns::kHeldBy, columns::kBlocks, columns::kSize, columns::kTogether});
    for (const HeldBlocks& group : blocks.held) {
      std::vector<int> slots(group.holders.begin(), group.holders.end());
      const bool is_program = slots.front() == 0;
      if (is_program) slots.erase(slots.begin());
      std::string holders = is_program ? "the program" : "";
      if (!slots.empty()) {
        holders += fmt::format("{}process{} {}", is_program ? ", " : "",
                               slots.size() == 1 ? "" : "es", ranges_text(slots));
      }
      held.add({SystemSnapshot::process_name(group.owner), holders,
                std::to_string(group.blocks.size()), size_text(group.block_bytes),
                size_text(group.block_bytes * group.blocks.size())});
    }
    text += "\n" + held.to_string();
  }
  for (const std::string& remark : blocks.remarks) text += visible(remark) + "\n";
  return text;
}

std::string system_blocks_json(const SystemSnapshot& system, const SystemBlocks& blocks) {
  Json json{{"schema", "weft.blocks/1"},   {"system", system.id},        {"name", system.name},
            {"state", system.state()},     {"processes", Json::array()}, {"held", Json::array()},
            {"unreadable", blocks.remarks}};
  for (const ProcessBlocks& process : blocks.processes) {
    json["processes"].push_back({{"process", process.slot},
                                 {"pid", system.pid(process.slot)},
                                 {"held_blocks", process.held_blocks},
                                 {"held_bytes", process.held_bytes},
                                 {"foreign_bytes", process.foreign_bytes},
                                 {"made_blocks", process.made_blocks},
                                 {"made_bytes", process.made_bytes},
                                 {"heap_bytes", process.heap_bytes}});
  }
  for (const HeldBlocks& group : blocks.held) {
    json["held"].push_back({{"owner", group.owner},
                            {"holders", group.holders},
                            {"block_bytes", group.block_bytes},
                            {"blocks", group.blocks}});
  }
  return json_text(json);
}

}  // namespace weft
