#include "transport/format/stored_command.hpp"

#include <algorithm>

#include "transport/format/tensor_fields.hpp"

namespace weft {

flatbuffers::Offset<CommandTables> write_commands(flatbuffers::FlatBufferBuilder& builder,
                                                  std::span<const StoredCommand> commands) {
  if (commands.empty()) return 0;
  std::vector<flatbuffers::Offset<fb::StoredCommand>> list;
  for (const StoredCommand& command : commands) {
    const fb::CommandMark mark(command.number, command.step);
    const auto name = builder.CreateString(command.name);
    const auto payload = builder.CreateString(command.payload);
    list.push_back(fb::CreateStoredCommand(builder, &mark, name, payload, command.is_read));
  }
  return builder.CreateVector(list);
}

std::vector<StoredCommand> read_commands(const CommandTables* stored) {
  std::vector<StoredCommand> commands;
  if (stored == nullptr) return commands;
  for (const fb::StoredCommand* command : *stored) {
    commands.push_back({.number = command->mark()->number(),
                        .step = command->mark()->step(),
                        .name = command->name()->str(),
                        .payload = command->payload()->str(),
                        .is_read = command->is_read()});
  }
  return commands;
}

std::optional<std::string> commands_fault(std::span<const StoredCommand> commands) {
  const auto not_after = [](const auto& a, const auto& b) {
    return a.number >= b.number || a.step > b.step || (!a.is_read && b.is_read);
  };
  const auto wrong = std::ranges::adjacent_find(commands, not_after);
  if (wrong == commands.end()) return {};
  return fmt::format("the commands '{}' and '{}' are not in order", wrong->name, wrong[1].name);
}

}  // namespace weft
