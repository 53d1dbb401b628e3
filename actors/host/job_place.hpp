#pragma once
/// JobPlace: what a job owns on this host outside its processes: its id, its control folder, its
/// segments. All of it is removed when the place is destroyed, or the process calls exit() before.
/// A forked child, which has a copy, removes nothing.

#include <string>
#include <vector>

#include "actors/trainer/job_spec.hpp"
#include "transport/blackbox/black_box_writer.hpp"
#include "transport/board/board.hpp"
#include "transport/job/job_folder.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// Ids and tokens are 128 random bits in hex.
class JobPlace {
 public:
  /// Makes the job's folder and lock in the control root (job_folder.hpp). Removes what jobs have
  /// left there whose lock nobody holds. `outlives_exit`: exit() doesn't remove it. Throws io.
  explicit JobPlace(bool outlives_exit);
  ~JobPlace() { remove(); }
  JobPlace(const JobPlace&) = delete;
  JobPlace& operator=(const JobPlace&) = delete;

  const std::string& id() const { return id_; }
  const std::string& token() const { return token_; }
  std::string socket_path() const { return folder() + "/control"; }
  /// The job's control folder.
  std::string folder() const { return folder_in(root_, id_); }
  std::string run_card_path() const { return run_card_in(root_, id_); }

  /// Throw no_space or io; what they made is removed with the place.
  Board make_board(const JobSpec& spec, const std::string& run_dir) const;
  /// Throws invalid_argument for a WEFT_TRACE that is none, too.
  BlackBoxWriter make_box(const JobSpec& spec) const;
  JobMemory make_memory(int num_chips) const;

  /// The environment of a worker's process. `address`: where the trainer listens.
  std::vector<std::string> variables_of(const JobSpec& spec, const LoopIdentity& loop,
                                        const std::string& address, int worker) const;

  /// Ends what the job owns, before the time for that where the process must go at once. From any
  /// thread.
  void remove();
  /// Leaves it to `weft rescue`, from the next moment on: nothing is removed.
  void leave();

 private:
  std::string id_;
  std::string token_;
  std::string root_;
};

}  // namespace weft
