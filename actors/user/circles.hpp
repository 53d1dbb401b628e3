#pragma once
/// Finds actors that wait for each other's answers in a circle.

#include <cstdint>
#include <string>

#include "transport/actors/actor_table_format.hpp"

namespace weft {

namespace detail {
class ActorProcess;
}

/// Returns the circle of waits that ends at actor `waiter`, such as "a[0].f > b[0].g > a[0].h". ""
/// if there is none. The waiter's row must have `awaited` already, so that of the actors of a
/// circle the last one that begins to wait finds it. Never finds a circle that an answer which is
/// under way will end.
std::string circle_of_waits(detail::ActorProcess& process, std::uint32_t waiter,
                            const AwaitedCall& awaited);

}  // namespace weft
