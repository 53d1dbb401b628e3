/// Converts the enums among a job's options to texts, and texts to enums.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weft/job/config.hpp>
#include <weft/tensor/error.hpp>

#include "spmd/base/nearest.hpp"

namespace weft {
namespace {

/// The values of an enum, with their texts. If a value has two texts, text_of() returns the first.
template <typename Enum, std::size_t N>
struct Texts {
  const char* option;
  std::array<std::pair<std::string_view, Enum>, N> values;

  std::string_view text_of(Enum value) const {
    const auto found = std::ranges::find(values, value, &std::pair<std::string_view, Enum>::second);
    WEFT_CHECK(found != values.end(), option);
    return found->first;
  }

  Enum parse(std::string_view text) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : values) {
      if (name == text) return value;
      names.emplace_back(name);
    }
    const std::vector<std::string> near = nearest_names(text, names);
    throw Error(
        Errc::invalid_argument,
        fmt::format("{} = \"{}\": expected \"{}\"{}", option, text, fmt::join(names, "\" or \""),
                    near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near[0])));
  }
};

constexpr Texts<Restart, 3> kRestarts{
    "run.failure.restart",
    {{{"worker", Restart::worker}, {"group", Restart::group}, {"none", Restart::none}}}};
constexpr Texts<Backend, 4> kBackends{"backend.backend",
                                      {{{"none", Backend::none},
                                        {"spmd", Backend::spmd},
                                        {"xla", Backend::xla},
                                        {"xla_tpu", Backend::xla_tpu}}}};
constexpr Texts<PartitioningMode, 1> kPartitioningModes{"backend.spmd.partitioning_mode",
                                                        {{{"auto", PartitioningMode::automatic}}}};
constexpr Texts<Wire, 3> kWires{
    "backend.wire", {{{"auto", Wire::automatic}, {"tls", Wire::tls}, {"ucx", Wire::ucx}}}};
constexpr Texts<PlacementStrategy, 4> kPlacementStrategies{
    "scaling.placement_strategy",
    {{{"PACK", PlacementStrategy::pack},
      {"SPREAD", PlacementStrategy::spread},
      {"STRICT_PACK", PlacementStrategy::strict_pack},
      {"STRICT_SPREAD", PlacementStrategy::strict_spread}}}};
constexpr Texts<DebugMode, 2> kDebugModes{
    "run.debug", {{{"none", DebugMode::none}, {"eager", DebugMode::eager}}}};

}  // namespace

std::string_view to_string(Restart restart) noexcept { return kRestarts.text_of(restart); }
Restart parse_restart(std::string_view text) { return kRestarts.parse(text); }

std::string_view to_string(Backend backend) noexcept { return kBackends.text_of(backend); }
Backend parse_backend(std::string_view text) { return kBackends.parse(text); }

std::string_view to_string(PartitioningMode mode) noexcept {
  return kPartitioningModes.text_of(mode);
}
PartitioningMode parse_partitioning_mode(std::string_view text) {
  return kPartitioningModes.parse(text);
}

std::string_view to_string(Wire wire) noexcept { return kWires.text_of(wire); }
Wire parse_wire(std::string_view text) { return kWires.parse(text); }

std::string_view to_string(PlacementStrategy strategy) noexcept {
  return kPlacementStrategies.text_of(strategy);
}
PlacementStrategy parse_placement_strategy(std::string_view text) {
  return kPlacementStrategies.parse(text);
}

std::string_view to_string(DebugMode mode) noexcept { return kDebugModes.text_of(mode); }
DebugMode parse_debug_mode(std::string_view text) { return kDebugModes.parse(text); }

}  // namespace weft
