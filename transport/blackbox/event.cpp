#include "transport/blackbox/event.hpp"

namespace weft {

std::string_view to_string(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::step: return "step";
    case EventKind::run: return "run";
    case EventKind::plan_step: return "plan_step";
    case EventKind::enter: return "enter";
    case EventKind::leave: return "leave";
    case EventKind::commit: return "commit";
    case EventKind::compile: return "compile";
    case EventKind::admission: return "admission";
    case EventKind::lease: return "lease";
    case EventKind::load: return "load";
    case EventKind::checkpoint: return "checkpoint";
    case EventKind::report: return "report";
    case EventKind::log: return "log";
    case EventKind::message_out: return "message_out";
    case EventKind::message_in: return "message_in";
    case EventKind::state: return "state";
    case EventKind::error: return "error";
    case EventKind::generation: return "generation";
    case EventKind::clock_jump: return "clock_jump";
  }
  return "unknown";
}

}  // namespace weft
