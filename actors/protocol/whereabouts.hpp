#pragma once
/// What the board and the system say of a worker.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <weft/result.hpp>

#include "actors/protocol/sighting.hpp"
#include "transport/board/board.hpp"

namespace weft {

/// Where the board saw a worker and its chips last.
Whereabouts locate(const Board& board, int worker);

/// Follows the waits from the chips of `worker` to the one that waits for nobody: its worker, if
/// that is another.
std::optional<int> find_awaited(std::span<const ActorRow> rows, int worker);

/// A failure by divergence names the worker that diverged, if one alone did, and not the one that
/// was seen first. To be called once all loops have ended: until then they are at other lines, too.
std::optional<Failure> with_worker_apart(std::optional<Failure> failure,
                                         std::span<const ActorRow> rows);

/// What a process does that doesn't come: "is stopped", "runs, and makes no step", "sleeps in
/// futex_wait"; see proc(5).
std::string describe_process(int pid);

/// Time that a process has had of all cores, in ticks of the kernel; 0 where it is gone.
std::uint64_t core_time(int pid);

/// A lost worker writes its rows no more: the trainer does.
void mark_lost(const Board& board, int worker);

}  // namespace weft
