#pragma once
/// What trainer, workers and their processes tell each other. Plain values; messages.hpp makes CAF
/// messages of them.

#include <cstdint>
#include <string>
#include <vector>

#include <weft/checkpoint_config.hpp>
#include <weft/device.hpp>

namespace weft {

/// A lease lets a worker begin this many steps. A worker that loses the trainer stops at its end.
inline constexpr std::uint64_t kLeaseSteps = 64;
/// A worker asks for the next lease this many steps before the end of its lease, so that no step
/// waits for the trainer's answer.
inline constexpr std::uint64_t kLeaseAskedAhead = 32;

/// A worker's first words.
struct JoinRequest {
  std::int32_t worker = -1;
  std::int32_t pid = 0;
  std::string token{};  ///< from WEFT_JOB_TOKEN
};

/// Which loop a job runs. A named one is found by its name, in the object that holds it; for one
/// without a name main() runs again in the worker, up to the fit() call of the same identity.
struct LoopIdentity {
  std::string name{};    ///< "": it has none
  std::string site{};    ///< "train.cpp:12": of the Loop; of the fit() call where it has no name
  std::string object{};  ///< path of the library that holds it; "": the executable
  std::string build{};   ///< of that object
  std::string type{};    ///< of a loop without a name
  std::uint64_t offset = 0;     ///< in its object, of a function without a name
  std::string config_digest{};  ///< XXH3 of loop_config
};

/// The trainer's answer: all that a worker must know.
struct Assignment {
  std::vector<std::int64_t> mesh_shape{};  ///< empty: no mesh
  std::vector<std::string> axis_names{};
  std::vector<int> device_ids{};
  DeviceKind device = DeviceKind::cpu;
  std::int32_t num_workers = 0;
  std::int32_t chips_per_worker = 0;
  std::int64_t timeout_ms = 0;
  std::uint64_t seed = 0;
  std::string run_dir{};
  bool recovers = false;    ///< the job survives losses
  bool keeps_state = true;  ///< two versions: to go on from, or to compare
  std::uint64_t check_replicas_every = 0;
  bool is_eager = false;          ///< each op runs when it is recorded
  CheckpointConfig checkpoint{};  ///< with the absolute path
  bool resume_partial = false;    ///< the loop makes the state that its checkpoint lacks
  LoopIdentity loop{};
  std::string loop_config{};  ///< CBOR; of a named loop
};

/// A program that a worker shows the trainer. Either the program is new to the worker: its
/// `sequence`-th, for its `run`-th run. Or the worker makes that run with a program that it knows,
/// while another worker wants a new program, number `sequence`, for the same run; then the worker
/// shows the program that it knows.
struct ProgramSeen {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint32_t sequence = 0;
  std::uint64_t run = 0;
  std::uint64_t fingerprint_low = 0;
  std::uint64_t fingerprint_high = 0;
  std::string text{};  ///< one line an op; to name the first that differs
  std::string site{};  ///< what it runs for: "the sync at train.cpp:41"
};

/// `number`: how many reports the worker has made before this one, at the same step and in the same
/// generation.
struct Report {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint32_t number = 0;
  std::string metrics{};     ///< a JSON object as CBOR, which has NaN
  std::string checkpoint{};  ///< folder, or ""
};

/// Hashes of the state that a worker's chips hold after `step` steps. Much state takes several
/// messages. `pieces` and `hashes` have a word per tensor and chip, those of a tensor
/// together: chips with the same piece of a tensor must have the same hash of it.
struct StateHashes {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t num_tensors = 0;       ///< of all the messages together
  std::vector<std::string> tensors{};  ///< of this one
  std::vector<std::uint64_t> pieces{};
  std::vector<std::uint64_t> hashes{};
};

/// Hashes of what a worker's loop uploads for its `run`-th run, the same in all workers. State is
/// uploaded by all of them or by none: by one alone it would be set on some chips only.
struct DataHashes {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t run = 0;
  std::uint32_t num_states = 0;        ///< the first tensors: parameters, buffers, optimizer state
  std::vector<std::string> tensors{};  ///< name, type and line of each, or an item's place
  std::vector<std::uint64_t> hashes{};
  static constexpr const char* kOfDataset = " of dataset ";  ///< in an item's place, before a name
};

/// To all workers, when all are there: their loops begin.
struct Start {
  std::uint64_t generation = 1;
  std::uint64_t step = 0;     ///< steps that earlier generations have taken
  std::uint64_t reports = 0;  ///< of worker 0 that the trainer has got
  std::string checkpoint{};   ///< reported, to be loaded by the loop before; "" for none
  std::string resume{};       ///< a CheckpointManager's, which has the state of `step`; "" for none
  /// Of the last checkpoint of a CheckpointManager, 0 for none.
  std::uint64_t saved_step = 0;
  bool asks = false;  ///< loops have asked whether they are to end
};

/// The end of a worker's loop: by return, or by the error whose code (an Errc) isn't 0. Generation
/// 0: the worker has joined, and can't run the loop.
struct LoopEnded {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t runs = 0;  ///< programs started
  std::uint8_t error = 0;
  std::string message{};
  bool preempted = false;   ///< the loop ended because it was told to
  bool left = false;        ///< a Preempted was thrown to end it, as it didn't ask whether to end
  std::string last{};       ///< what the last of the programs ran for; "" for none
  std::string thrown_at{};  ///< the user's calls at the throw; "": unknown, or it returned
  std::string returned{};   ///< as CBOR; "": nothing
};

/// The end of a worker's process, as its parent sees it.
struct ProcessEnded {
  std::int32_t worker = -1;
  std::int32_t pid = 0;
  std::int32_t signal = 0;
  std::int32_t exit_code = 0;
  bool out_of_memory = false;  ///< while it lived, the kernel killed a process for want of memory
  bool status_taken = false;   ///< somebody else has waited for it: how it ended isn't known
};

}  // namespace weft
