#pragma once
/// The fields of the messages about commands, for CAF, and the names of these messages.

#include <caf/atom.hpp>
#include <caf/meta/type_name.hpp>

#include "actors/commands/command_desk.hpp"
#include "actors/commands/command_messages.hpp"

namespace weft {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CommandMark& x) {
  return f(caf::meta::type_name("weft::mark/1"), x.number, x.step);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CommandList& x) {
  return f(caf::meta::type_name("weft::commands/1"), x.commands);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CommandsRead& x) {
  return f(caf::meta::type_name("weft::read/1"), x.worker, x.generation, x.is_earlier, x.marks);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CommandsAwaited& x) {
  return f(caf::meta::type_name("weft::awaited/1"), x.worker, x.generation, x.step, x.last);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ReadElsewhere& x) {
  return f(caf::meta::type_name("weft::elsewhere/1"), x.worker, x.mark);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CommandPost& x) {
  return f(caf::meta::type_name("weft::post/1"), x.post, x.name, x.payload);
}

using hold_a = caf::atom_constant<caf::atom("hold")>;
using held_a = caf::atom_constant<caf::atom("held")>;
using let_go_a = caf::atom_constant<caf::atom("letgo")>;
using read_a = caf::atom_constant<caf::atom("read")>;
using waits_a = caf::atom_constant<caf::atom("waits")>;
using post_a = caf::atom_constant<caf::atom("post")>;

}  // namespace weft
