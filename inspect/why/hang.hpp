#pragma once
/// Hang: decides when a job that doesn't move is hung. The decision follows from the snapshot and
/// is never stored.

#include <optional>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns for how many seconds a job may be without movement: 10 x the p99 of its steps, at least
/// 5 s; at least 30 s while a loop compiles, loads or saves; 60 s before the first step.
double patience_s(const Snapshot& snapshot);

/// Returns for how many seconds a process that can't continue by itself may stand still: 10 x the
/// p99 of the job's steps, at least 1 s, at most `patience`. (`patience` is the limit for waits.)
double stop_patience_s(const Snapshot& snapshot, double patience);

/// Returns the seconds since anything in the job has moved; 0 if unknown. While a chip waits for
/// others, a loop's reports and user code don't count as movement. A loop's other activity counts
/// only until no chip has got work for 6 times patience_s().
double idle_s(const Snapshot& snapshot);
/// Returns the seconds since the worker or one of its chips has moved, by the rules above.
double idle_s(const Snapshot& snapshot, int worker);

/// Returns whether the actor compiles or loads, and a thread that does so runs or waits for a core.
/// The compiler of a chip's programs may use threads of its own.
bool compiles(const Snapshot& snapshot, const ActorRow& row);

/// Returns for how many seconds all loops that haven't ended have waited for commands
/// (TrainContext::wait_commands()); nothing if one of these loops doesn't.
std::optional<double> awaits_commands_s(const Snapshot& snapshot);

/// Returns whether the job is hung: its loops run and don't all wait for commands, no debugger
/// holds a process, and nothing has moved for longer than patience_s().
bool is_hung(const Snapshot& snapshot);
bool is_hung(const Snapshot& snapshot, double patience_s);

/// Returns whether the trainer's own thread is in a callback while no loop runs, because all loops
/// have ended or none has begun.
bool waits_for_callback(const Snapshot& snapshot);

/// Returns how many seconds the callback has lasted; 0 if the trainer is in no callback.
double callback_s(const Snapshot& snapshot);

/// Returns whether anything has moved between two snapshots of a job: a step, a collective, a state
/// or a commit. Time stamps don't count, because a waiting actor renews them.
bool has_moved(const Snapshot& before, const Snapshot& now);

}  // namespace weft
