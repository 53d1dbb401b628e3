#include "chips/registry/registry.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <weft/tensor/error.hpp>

#include "chips/cpu/cpu_target.hpp"
#include "chips/cpu/executor.hpp"

namespace weft {
namespace {

constexpr ChipKind kKinds[] = {
    {.kind = DeviceKind::cpu,
     .target = &kCpuTarget,
     .make = [](EngineParts parts) -> std::unique_ptr<Engine> {
       return std::make_unique<Executor>(parts.memory, parts.mesh, parts.position, parts.recorder,
                                         parts.policy, parts.local_index, std::move(parts.network));
     },
     .limitation = Executor::limitation},
};

}  // namespace

const ChipKind& chip_kind(DeviceKind kind) {
  const auto found = std::ranges::find(kKinds, kind, &ChipKind::kind);
  WEFT_CHECK(found != std::end(kKinds), static_cast<int>(kind));
  return *found;
}

}  // namespace weft
