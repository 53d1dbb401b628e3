#include "chips/registry/registry.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <weft/tensor/error.hpp>

#include "chips/cpu/cpu_target.hpp"
#include "chips/cpu/executor.hpp"
#include "chips/pjrt/pjrt_engine.hpp"
#include "chips/pjrt/pjrt_target.hpp"

namespace weft {
namespace {

std::unique_ptr<Engine> make_pjrt_engine(EngineParts parts) {
  if (parts.network != nullptr) {
    fail(Errc::unavailable,
         "scaling.device = pjrt:cpu with chips on several hosts: this version runs such chips on "
         "one host only; use scaling.device = cpu");
  }
  return std::make_unique<PjrtEngine>(parts.memory, parts.mesh, parts.position, parts.recorder,
                                      parts.policy, parts.local_index);
}

constexpr ChipKind kKinds[] = {
    {.kind = DeviceKind::cpu,
     .target = &kCpuTarget,
     .make = [](EngineParts parts) -> std::unique_ptr<Engine> {
       return std::make_unique<Executor>(parts.memory, parts.mesh, parts.position, parts.recorder,
                                         parts.policy, parts.local_index, std::move(parts.network));
     },
     .limitation = Executor::limitation},
    {.kind = DeviceKind::pjrt_cpu,
     .target = &kPjrtCpuTarget,
     .make = make_pjrt_engine,
     .limitation = [] { return std::string(); }},
};

}  // namespace

const ChipKind& chip_kind(DeviceKind kind) {
  const auto found = std::ranges::find(kKinds, kind, &ChipKind::kind);
  WEFT_CHECK(found != std::end(kKinds), static_cast<int>(kind));
  return *found;
}

}  // namespace weft
