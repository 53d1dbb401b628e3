#pragma once
/// Lists the fields of the messages about commands for CAF.

#include "actors/caf/names.hpp"
#include "actors/commands/command_desk.hpp"
#include "actors/commands/command_messages.hpp"

namespace weft {

template <class Inspector>
auto inspect(Inspector& f, CommandMark& x) {
  return inspect_fields(f, x, x.number, x.step);
}
template <class Inspector>
auto inspect(Inspector& f, CommandList& x) {
  return inspect_fields(f, x, x.commands);
}
template <class Inspector>
auto inspect(Inspector& f, CommandsRead& x) {
  return inspect_fields(f, x, x.worker, x.generation, x.is_earlier, x.marks);
}
template <class Inspector>
auto inspect(Inspector& f, CommandsAwaited& x) {
  return inspect_fields(f, x, x.worker, x.generation, x.step, x.last);
}
template <class Inspector>
auto inspect(Inspector& f, ReadElsewhere& x) {
  return inspect_fields(f, x, x.worker, x.mark);
}
template <class Inspector>
auto inspect(Inspector& f, CommandPost& x) {
  return inspect_fields(f, x, x.post, x.name, x.payload);
}

}  // namespace weft
