#pragma once
/// Action: what JobState wants done.

#include <cstdint>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

#include "actors/protocol/protocol.hpp"
#include "actors/protocol/save_messages.hpp"

namespace weft {

/// A checkpoint in which every worker has its part.
struct WholeCheckpoint {
  std::uint64_t step = 0;
  std::string path{};
  bool is_saved = false;  ///< by a CheckpointManager: it has the state by names
};

namespace action {

// To every worker that has joined.

/// The next generation begins. Nobody uses the job's memory before this is carried out.
using weft::Start;
/// To the others: the worker wants its new program number `sequence` for run number `run`.
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
/// From this step on the loops are told to end.
struct EndAt {
  std::uint64_t step = 0;
};
/// To the others: the worker's loop has ended after so many programs.
struct PeerEnded {
  int worker = -1;
  std::uint64_t runs = 0;
  std::string last;  ///< the call that the last program ran for
};
/// The generation is over: every worker is to leave its loop.
struct Unwind {
  std::string why;
};
/// The job has failed.
struct Cancel {
  std::string why;
};
/// The job has ended well.
struct Stop {};
/// A part of this save could not be written, so that the others needn't be.
struct DropParts {
  std::uint64_t generation = 0;
  std::uint64_t save = 0;
};
/// A save has ended, well or not, and no worker writes to it.
struct TellSaved {
  SaveEnded ended;
};

// To worker 0.

/// The parts of this save are all written, and can be joined to a checkpoint.
struct JoinParts {
  std::uint64_t generation = 0;
  std::uint64_t save = 0;
};

// To the worker's process.

struct Kill {
  int worker = -1;
  bool dumps_stack = false;  ///< it hangs, and may say where
};
/// Start a process for the worker. The process before is no longer a member of the job.
struct Launch {
  int worker = -1;
};

// To the log.

struct Warn {
  std::string text;
};

// Timers.

/// Call gather_deadline(generation) in JobTerms::timeout_s.
struct GatherDeadline {
  std::uint64_t generation = 0;
};
/// Call grace_over() in so many milliseconds.
struct Grace {
  std::uint64_t ms = 0;
};

/// Call restart_due(worker) in so many milliseconds.
struct Backoff {
  int worker = -1;
  std::uint64_t ms = 0;
};
/// How long a worker's process may outlive its link before that counts as a loss, and a link its
/// process before the next one is started.
inline constexpr std::uint64_t kLinkGraceMs = 1000;
/// Call link_grace_over(worker, number) in kLinkGraceMs.
struct LinkGrace {
  int worker = -1;
  std::uint64_t number = 0;
};

}  // namespace action

using Action =
    std::variant<action::Start, action::Asked, action::Admit, action::Grant, action::Pause,
                 action::EndAt, action::PeerEnded, action::Unwind, action::Cancel, action::Stop,
                 action::DropParts, action::TellSaved, action::JoinParts, action::Kill,
                 action::Launch, action::Warn, action::GatherDeadline, action::Grace,
                 action::Backoff, action::LinkGrace>;
using Actions = std::vector<Action>;

/// Those of `first`, then those of `second`.
inline Actions concat(Actions first, Actions second) {
  first.insert(first.end(), std::move_iterator(second.begin()), std::move_iterator(second.end()));
  return first;
}

/// For std::visit.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace weft
