#pragma once
/// The columns of all tables of the weft command: one thing has one heading, and one unit. Times,
/// sizes and shares have their unit in the cell, a rate has it in the heading, a number has none.

#include "inspect/views/table.hpp"

namespace weft::columns {

// Jobs.
inline constexpr Column kJob{"job"};
inline constexpr Column kName{"name"};
inline constexpr Column kState{"state"};
inline constexpr Column kFor{"for", Align::right};  ///< how long the state has lasted
inline constexpr Column kStep{"step", Align::right};
inline constexpr Column kRate{"steps/s", Align::right};
inline constexpr Column kLoss{"loss", Align::right};
inline constexpr Column kWorkers{"workers", Align::right};
inline constexpr Column kChips{"chips", Align::right};
inline constexpr Column kPid{"pid", Align::right};
inline constexpr Column kStarted{"started"};
inline constexpr Column kSegments{"segments", Align::right};
inline constexpr Column kOutcome{"outcome"};
inline constexpr Column kCheckpoints{"checkpoints"};

// Actors, and what they do.
inline constexpr Column kActor{"actor"};
inline constexpr Column kCpu{"CPU", Align::right};             ///< of one core
inline constexpr Column kCameLast{"came last", Align::right};  ///< of a chip's collectives
inline constexpr Column kWaits{"waits", Align::right};         ///< time waited for others
inline constexpr Column kUnread{"unread", Align::right};       ///< messages that it hasn't begun
inline constexpr Column kMessage{"last message"};
inline constexpr Column kDoing{"doing"};

// Collectives.
inline constexpr Column kChip{"chip", Align::right};
inline constexpr Column kWorker{"worker", Align::right};
inline constexpr Column kCollectives{"collectives", Align::right};
inline constexpr Column kOthersWait{"others' waits", Align::right};
inline constexpr Column kShare{"share", Align::right};
inline constexpr Column kOwnAbove{"own above median", Align::right};
inline constexpr Column kCollective{"collective"};
inline constexpr Column kCalls{"calls", Align::right};
inline constexpr Column kP50{"p50 <", Align::right};
inline constexpr Column kP99{"p99 <", Align::right};
inline constexpr Column kMostlyLast{"mostly last"};

// Programs, plans and their steps.
inline constexpr Column kProgram{"program", Align::right};
inline constexpr Column kGeneration{"generation", Align::right};
inline constexpr Column kOfWorkers{"workers"};  ///< which ones
inline constexpr Column kCompiled{"compiled in", Align::right};
inline constexpr Column kFrom{"from"};
inline constexpr Column kFingerprint{"fingerprint"};
inline constexpr Column kAt{"at"};  ///< the line of the program
inline constexpr Column kOp{"op"};
inline constexpr Column kTimes{"times", Align::right};
inline constexpr Column kMedian{"median", Align::right};
inline constexpr Column kGflops{"GFLOP/s", Align::right};
inline constexpr Column kGbytes{"GB/s", Align::right};
inline constexpr Column kOfLimit{"of limit", Align::right};
inline constexpr Column kBound{"bound"};

// Tensors.
inline constexpr Column kTensor{"tensor"};
inline constexpr Column kKind{"kind"};
inline constexpr Column kType{"type"};
inline constexpr Column kSharding{"sharding"};
inline constexpr Column kOnAChip{"on a chip"};
inline constexpr Column kOfChips{"chips"};  ///< which ones
inline constexpr Column kSize{"size", Align::right};
inline constexpr Column kMin{"min", Align::right};
inline constexpr Column kMax{"max", Align::right};
inline constexpr Column kNan{"NaN", Align::right};
inline constexpr Column kInf{"inf", Align::right};
inline constexpr Column kXxh3{"XXH3"};

}  // namespace weft::columns
