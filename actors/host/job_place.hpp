#pragma once
/// JobPlace: owns the id, the control folder and the segments of a job on this host. It removes
/// them when it is destroyed or the process calls exit(). The copy of a place in a forked child
/// removes nothing.

#include <optional>
#include <string>
#include <vector>

#include "actors/trainer/job_spec.hpp"
#include "transport/blackbox/black_box_writer.hpp"
#include "transport/board/board.hpp"
#include "transport/job/job_folder.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// The identity of a job, which is the same on all of its hosts.
struct JobIdentity {
  std::string id;     ///< the job's checkpoints have this id
  std::string token;  ///< the job's workers join with this token
};

/// A job of another host that has a part on this host.
struct JobPart {
  JobIdentity job;
  std::string memory_id;  ///< JobPlace::id() of the part, a result of random_id()
};

/// Returns 128 random bits in hex.
std::string random_id();

/// The place's ids and its token are results of random_id().
class JobPlace {
 public:
  /// Makes the job's folder and lock in the control root (job_folder.hpp), for `part` or, without
  /// it, for a new job. Removes the remains of other jobs in the root whose lock no process holds.
  /// With `outlives_exit`, exit() doesn't remove the place. Throws io.
  explicit JobPlace(bool outlives_exit, std::optional<JobPart> part = {});
  ~JobPlace() { remove(); }
  JobPlace(const JobPlace&) = delete;
  JobPlace& operator=(const JobPlace&) = delete;

  /// Returns the id that names the job's segments, folder and lock on this host.
  const std::string& id() const { return id_; }
  const JobIdentity& job() const { return job_; }
  std::string socket_path() const { return folder() + "/control"; }
  /// Returns the job's control folder.
  std::string folder() const { return folder_in(root_, id_); }
  std::string run_card_path() const { return run_card_in(root_, id_); }

  /// Each of the next three functions throws no_space or io. The place removes the files that they
  /// make.
  Board make_board(const JobSpec& spec, const std::string& run_dir) const;
  /// Also throws invalid_argument for an invalid WEFT_TRACE.
  BlackBoxWriter make_box(const JobSpec& spec) const;
  /// Makes the memory of the host's chips. Also throws invalid_argument for an invalid
  /// WEFT_ARENA_BYTES.
  JobMemory make_memory(const JobSpec& spec) const;

  /// Writes the secret of a job of several hosts into the control folder, for the workers. Throws
  /// io.
  void keep_secret(const std::string& secret) const;
  /// Returns the environment of a worker's process. The trainer listens at `address`.
  std::vector<std::string> variables_of(const JobSpec& spec, const LoopIdentity& loop,
                                        const std::string& address, int worker) const;

  /// Removes the job's files now, for a process that exits without running the destructor. Any
  /// thread may call it.
  void remove();
  /// Leaves the files for `weft rescue`: from now on the place removes nothing.
  void leave();

 private:
  std::string id_;
  JobIdentity job_;
  std::string root_;
};

}  // namespace weft
