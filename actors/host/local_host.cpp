#include "actors/host/local_host.hpp"

#include "actors/protocol/whereabouts.hpp"
#include "transport/state/commits.hpp"

namespace weft {

std::uint64_t LocalHost::common_step() const { return ::weft::common_step(memory_); }

Whereabouts LocalHost::locate(int worker) const { return ::weft::locate(board_, worker); }

std::string LocalHost::describe_process(const ProcessId& process) const {
  return ::weft::describe_process(process.pid);
}

std::uint64_t LocalHost::core_time(const ProcessId& process) const {
  return ::weft::core_time(process.pid);
}

void LocalHost::mark_lost(int worker) { ::weft::mark_lost(board_, worker); }

}  // namespace weft
