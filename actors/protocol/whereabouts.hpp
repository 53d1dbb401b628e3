#pragma once
/// Finds out about a worker from the board and the system.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <weft/job/result.hpp>

#include "actors/protocol/sighting.hpp"
#include "transport/board/board.hpp"

namespace weft {

/// Returns the step and collective that the board shows for the worker and its chips.
Whereabouts locate(const Board& board, int worker);

/// Follows the waits from the chips of `worker` to a chip that waits for no other chip. Returns
/// that chip's worker, but nothing if it is `worker` itself.
std::optional<int> find_awaited(std::span<const ActorRow> rows, int worker);

/// If the failure is a divergence and exactly one worker diverged, returns the failure with that
/// worker instead of the worker that was seen first. Must be called only after all loops have
/// ended, because until then workers may be at different lines anyway.
std::optional<Failure> with_worker_apart(std::optional<Failure> failure,
                                         std::span<const ActorRow> rows);

/// Describes what a process that doesn't arrive is doing: "is stopped", "runs, but makes no step",
/// "sleeps in futex_wait"; see proc(5).
std::string describe_process(int pid);

/// Returns the time that the process has used on all cores, in ticks of the kernel; 0 if the
/// process is gone.
std::uint64_t core_time(int pid);

/// Marks a lost worker's rows as lost, which the worker can't do itself any more. If its host is
/// lost too, `why` says how.
void mark_lost(const Board& board, int worker, std::string_view why);

}  // namespace weft
