#pragma once
/// Text about the use of the network by the collectives of a plan for several hosts. `weft plan`
/// shows none of it for a mesh on one host.

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "inspect/views/table.hpp"
#include "spmd/plan/plan.hpp"

namespace weft {

inline constexpr Column kTier{"tier"};
inline constexpr Column kSteps{"steps"};
inline constexpr Column kSentByHost{"sent by a host", Align::right};
inline constexpr Column kOrderOfSums{"adds"};

inline bool has_hosts(const Mesh& mesh) { return mesh.dcn_atoms() != 0; }

/// Returns what a reduction adds up in order: "chips of a host" or "hosts"; "" for other
/// collectives.
std::string_view order_of_sums(const CollectiveSummary& collective);
/// Returns the number of the collective's step, or "7 to 12" if step 12 waits for the collective.
std::string steps_of(const CollectiveSummary& collective);
/// Returns lines with the bytes that a host sends in a run, and with the order of sums.
std::string tiers_text(std::int64_t dcn_bytes);

/// Returns an object with `shape`, `axes` and, if there are several hosts, `hosts`.
nlohmann::json mesh_json(const Mesh& mesh);
/// Returns an object with `tier`, `dcn_bytes` and, for a reduction, `adds`.
nlohmann::json tier_json(const CollectiveSummary& collective);

}  // namespace weft
