#pragma once
/// When a job that doesn't move is hung: a state that is derived from what the job shows, never
/// stored.

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// How long nothing may move: 10 x the p99 of the job's own steps, at least 5 s; 30 s where a loop
/// compiles, loads or saves; 60 s before the first step.
double patience_s(const Snapshot& snapshot);

/// How long one that doesn't go on by itself may stand still, where waits for others may take
/// `patience`: 10 x the p99 of its job's steps, at least 1 s, at most `patience`.
double stop_patience_s(const Snapshot& snapshot, double patience);

/// How long nothing of the job has moved; 0 where it can't be known. While a chip waits for others,
/// a loop that only reports, or is in its own code, doesn't move; nor does one that does other
/// things, but no chip's work, for 6 x the patience.
double idle_s(const Snapshot& snapshot);
/// The same of one worker.
double idle_s(const Snapshot& snapshot, int worker);

/// Its loops run, none is held by a debugger, and nothing has moved for longer than patience_s().
bool is_hung(const Snapshot& snapshot);
bool is_hung(const Snapshot& snapshot, double patience_s);

/// The trainer's own thread is in a callback, and no loop runs any more, or none yet.
bool waits_for_callback(const Snapshot& snapshot);

/// How long it has been there; 0: it is in none.
double callback_s(const Snapshot& snapshot);

/// Whether anything has moved between two snapshots of a job: a step, a collective, a state, a
/// commit. Not a time stamp: who waits renews it.
bool has_moved(const Snapshot& before, const Snapshot& now);

}  // namespace weft
