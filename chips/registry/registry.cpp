#include "chips/registry/registry.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <weft/tensor/error.hpp>

#include "chips/accelerator/accelerator_engine.hpp"
#include "chips/accelerator/accelerator_target.hpp"
#include "chips/cpu/cpu_target.hpp"
#include "chips/cpu/executor.hpp"
#include "chips/pjrt/pjrt_engine.hpp"
#include "chips/pjrt/pjrt_target.hpp"

namespace weft {
namespace {

void require_one_host(const EngineParts& parts, DeviceKind kind) {
  if (parts.network == nullptr) return;
  fail(Errc::unavailable,
       "scaling.device = {} with chips on several hosts: this version runs such chips on one host "
       "only; use scaling.device = cpu",
       to_string(kind));
}

std::unique_ptr<Engine> make_pjrt_engine(EngineParts parts) {
  require_one_host(parts, DeviceKind::pjrt_cpu);
  return std::make_unique<PjrtEngine>(parts.memory, parts.mesh, parts.position, parts.recorder,
                                      parts.policy, parts.local_index, std::move(parts.store));
}

template <DeviceKind kind>
std::unique_ptr<Engine> make_accelerator_engine(EngineParts parts) {
  require_one_host(parts, kind);
  return std::make_unique<AcceleratorEngine>(kind, parts.memory, parts.mesh, parts.position,
                                             parts.recorder, parts.policy, parts.local_index);
}

std::string no_limitation() { return {}; }

/// Buffers have half of an arena. This is more than the memory of any device.
constexpr std::size_t kAcceleratorArena = std::size_t{512} << 30;

template <DeviceKind kind>
ChipKind accelerator(const Target& target) {
  return {.kind = kind,
          .target = &target,
          .make = make_accelerator_engine<kind>,
          .limitation = no_limitation,
          .arena_capacity = kAcceleratorArena};
}

std::span<const ChipKind> all_kinds() {
  static const ChipKind kinds[] = {
      {.kind = DeviceKind::cpu,
       .target = &kCpuTarget,
       .make = [](EngineParts parts) -> std::unique_ptr<Engine> {
         return std::make_unique<Executor>(parts.memory, parts.mesh, parts.position, parts.recorder,
                                           parts.policy, parts.local_index,
                                           std::move(parts.network));
       },
       .limitation = Executor::limitation},
      {.kind = DeviceKind::pjrt_cpu,
       .target = &kPjrtCpuTarget,
       .make = make_pjrt_engine,
       .limitation = no_limitation},
      accelerator<DeviceKind::gpu>(kGpuTarget),
      accelerator<DeviceKind::tpu>(kTpuTarget),
      accelerator<DeviceKind::pjrt_mirrored>(kPjrtMirroredTarget),
  };
  return kinds;
}

}  // namespace

const ChipKind& chip_kind(DeviceKind kind) {
  const std::span<const ChipKind> kinds = all_kinds();
  const auto found = std::ranges::find(kinds, kind, &ChipKind::kind);
  WEFT_CHECK(found != kinds.end(), static_cast<int>(kind));
  return *found;
}

}  // namespace weft
