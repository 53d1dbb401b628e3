#pragma once
/// Action: an action that JobState requests from its owner.

#include <cstdint>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

#include "actors/protocol/overloaded.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/protocol/save_messages.hpp"

namespace weft {

namespace action {

/// Sent when no worker uses any host's memory. The owner clears the memory for the next generation,
/// which begins at `step`, and calls prepared(host, number) for each host except host 0.
struct Prepare {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint64_t number = 0;  ///< counts the preparations of the job
  std::uint64_t seed = 0;    ///< the job's seed, as in Start; the trainer's actor sets it
};

// The following actions are messages to every worker that has joined.

using weft::Start;  ///< all memory is prepared, and the next generation begins
/// Sent to all workers except `worker`, which wants to run its new program number `sequence` as run
/// number `run`.
struct Asked {
  int worker = -1;
  std::uint32_t sequence = 0;
  std::uint64_t run = 0;
};
/// Programs below this number may run.
struct Admit {
  std::uint64_t programs = 0;
};
/// Steps below this one may begin.
struct Grant {
  std::uint64_t steps = 0;
};
/// No further step may begin.
struct Pause {};
/// The loops are told to end at this step.
struct EndAt {
  std::uint64_t step = 0;
};
/// Sent to all workers except `worker`, whose loop has ended after `runs` programs.
struct PeerEnded {
  int worker = -1;
  std::uint64_t runs = 0;
  std::string last;  ///< the call that the last program ran for
};
/// The generation is over, and every worker must leave its loop.
struct Unwind {
  std::string why;
};
/// The job has failed.
struct Cancel {
  std::string why;
};
/// The job has ended well.
struct Stop {};
/// A part of this save could not be written, so workers that still write their parts may stop.
struct DropParts {
  std::uint64_t generation = 0;
  std::uint64_t save = 0;
};
/// A save has ended, with or without an error, and no worker writes to it any more.
struct TellSaved {
  SaveEnded ended;
};

/// A message to this worker: all parts of this save are written, and the worker can join the parts
/// of its host.
struct JoinParts {
  int worker = 0;
  std::uint64_t generation = 0;
  std::uint64_t save = 0;
};

// The following actions concern a worker's process.

struct Kill {
  int worker = -1;
  bool dumps_stack = false;  ///< the worker hangs, so it may write its stack before it is killed
};
/// Start a process for the worker. The previous process is no longer a member of the job.
struct Launch {
  int worker = -1;
};

/// Writes to the log.
struct Warn {
  std::string text;
};

// The following actions set timers.

/// Call gather_deadline(number) after JobTerms::timeout_s seconds.
struct GatherDeadline {
  std::uint64_t number = 0;
};
/// Call grace_over(), which ends a preempted job, after this many milliseconds.
struct Grace {
  std::uint64_t ms = 0;
};
/// Call restart_due(worker) after this many milliseconds.
struct Backoff {
  int worker = -1;
  std::uint64_t ms = 0;
};
inline constexpr std::uint64_t kWireGraceMs = 1000;
/// Call wire_grace_over(generation) after kWireGraceMs. Until then, the loss of a worker or host
/// may arrive, which explains the broken connection.
struct WireGrace {
  std::uint64_t generation = 0;
};
/// The time after which a worker with a broken link counts as lost, though its process runs. It is
/// also the time for which the next process waits for the link of a process that has ended.
inline constexpr std::uint64_t kLinkGraceMs = 1000;
/// Call link_grace_over(worker, number) after kLinkGraceMs.
struct LinkGrace {
  int worker = -1;
  std::uint64_t number = 0;
};

}  // namespace action

using Action =
    std::variant<action::Prepare, action::Start, action::Asked, action::Admit, action::Grant,
                 action::Pause, action::EndAt, action::PeerEnded, action::Unwind, action::Cancel,
                 action::Stop, action::DropParts, action::TellSaved, action::JoinParts,
                 action::Kill, action::Launch, action::Warn, action::GatherDeadline, action::Grace,
                 action::Backoff, action::WireGrace, action::LinkGrace>;
using Actions = std::vector<Action>;

/// Returns the actions of `first` followed by those of `second`.
inline Actions concat(Actions first, Actions second) {
  first.insert(first.end(), std::move_iterator(second.begin()), std::move_iterator(second.end()));
  return first;
}

}  // namespace weft
