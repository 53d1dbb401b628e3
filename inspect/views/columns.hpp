#pragma once
/// Columns: the columns of all tables of the weft command. The same quantity always has the same
/// heading and unit. Times, sizes and shares have their unit in the cell. A rate has its unit in
/// the heading. A count has no unit.

#include "inspect/views/table.hpp"

namespace weft::columns {

// These columns describe jobs.
inline constexpr Column kJob{"job"};
inline constexpr Column kName{"name"};
inline constexpr Column kHost{"host"};
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

// These columns describe actors and their work.
inline constexpr Column kActor{"actor"};
inline constexpr Column kCpu{"CPU", Align::right};             ///< percent of one core
inline constexpr Column kCameLast{"came last", Align::right};  ///< share of a chip's collectives
inline constexpr Column kWaits{"waits", Align::right};         ///< time waited for others
inline constexpr Column kUnread{"unread", Align::right};       ///< messages not yet handled
inline constexpr Column kMessage{"last message"};
inline constexpr Column kDoing{"doing"};

// These columns describe actor systems, their actors and their blocks of memory.
inline constexpr Column kSystem{"actor system"};
inline constexpr Column kActors{"actors", Align::right};
inline constexpr Column kMeshes{"meshes", Align::right};
inline constexpr Column kProcesses{"processes", Align::right};
/// Messages of one process that wait at the actor's thread.
inline constexpr Column kMailbox{"mailbox", Align::right};
inline constexpr Column kRestarts{"restarts", Align::right};
inline constexpr Column kBegun{"begun", Align::right};  ///< functions that the actor has begun
inline constexpr Column kBegunRate{"begun/s", Align::right};
inline constexpr Column kProcess{"process"};
inline constexpr Column kHolds{"holds", Align::right};
inline constexpr Column kBlocks{"blocks", Align::right};
inline constexpr Column kForeign{"of other heaps", Align::right};
inline constexpr Column kHeap{"own heap", Align::right};
inline constexpr Column kHeapOf{"heap of"};
inline constexpr Column kHeldBy{"held by"};
inline constexpr Column kTogether{"together", Align::right};

// These columns describe collectives.
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

// These columns describe programs, plans and their steps.
inline constexpr Column kProgram{"program", Align::right};
inline constexpr Column kGeneration{"generation", Align::right};
inline constexpr Column kOfWorkers{"workers"};  ///< the workers' numbers
inline constexpr Column kCompiled{"compiled in", Align::right};
inline constexpr Column kFrom{"from"};
inline constexpr Column kFingerprint{"fingerprint"};
inline constexpr Column kAt{"at"};  ///< file and line in the program
inline constexpr Column kOp{"op"};
inline constexpr Column kTimes{"times", Align::right};
inline constexpr Column kMedian{"median", Align::right};
inline constexpr Column kGflops{"GFLOP/s", Align::right};
inline constexpr Column kGbytes{"GB/s", Align::right};
inline constexpr Column kOfLimit{"of limit", Align::right};
inline constexpr Column kBound{"bound"};

// These columns describe tensors.
inline constexpr Column kTensor{"tensor"};
inline constexpr Column kKind{"kind"};
inline constexpr Column kType{"type"};
inline constexpr Column kSharding{"sharding"};
inline constexpr Column kOnAChip{"on a chip"};
inline constexpr Column kOfChips{"chips"};  ///< the chips' numbers
inline constexpr Column kSize{"size", Align::right};
inline constexpr Column kMin{"min", Align::right};
inline constexpr Column kMax{"max", Align::right};
inline constexpr Column kNan{"NaN", Align::right};
inline constexpr Column kInf{"inf", Align::right};
inline constexpr Column kXxh3{"XXH3"};

}  // namespace weft::columns
