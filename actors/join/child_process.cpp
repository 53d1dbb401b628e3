#include "actors/join/child_process.hpp"

#include <cstdio>
#include <cstdlib>
#include <future>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "actors/user/actor_process.hpp"

namespace weft {
namespace {

constexpr const char* kVariable = "WEFT_ACTORS";

}  // namespace

std::vector<std::string> to_variables(const ChildVariables& variables) {
  return {fmt::format("{}={},{},{},{}", kVariable, variables.system, variables.peer.slot,
                      variables.peer.incarnation, variables.port_count)};
}

std::optional<ChildVariables> take_child_variables() {
  const char* text = std::getenv(kVariable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  ChildVariables variables;
  char system[33] = {};
  if (std::sscanf(text, "%32[0-9a-f],%u,%u,%u", system, &variables.peer.slot,
                  &variables.peer.incarnation, &variables.port_count) != 4) {
    fail(Errc::invalid_argument,
         "{} = \"{}\": expected what an actor system sets for its processes; unset it to start the "
         "program itself",
         kVariable, text);
  }
  variables.system = system;
  ::unsetenv(kVariable);
  return variables;
}

void run_child_process(const ChildVariables& variables) {
  std::promise<void> left;
  ActorTable actors = ActorTable::open(variables.system);
  const ActorProcessOptions options{.port_count = variables.port_count,
                                    .runners = variables.port_count - 1,
                                    .heap_bytes = actors.head().heap_bytes,
                                    .call_timeout_s = actors.head().call_timeout_s};
  const auto process = detail::ActorProcess::join(
      PeerTable::open(variables.system), std::move(actors), variables.peer, options,
      [&](ActorOp op, PeerId, std::uint32_t, std::uint64_t, const Error&) {
        if (op == ActorOp::leave) left.set_value();
      });
  process->report_joined();
  left.get_future().wait();
  process->stop();
}

}  // namespace weft
