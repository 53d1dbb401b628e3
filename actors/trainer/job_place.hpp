#pragma once
/// JobPlace: what a job owns on this host outside its processes: its id, its control folder, its
/// segments. All of it is removed when the place is destroyed.

#include <string>

#include <weft/actors/trainer/job_spec.hpp>
#include <weft/transport/board.hpp>
#include <weft/transport/job_memory.hpp>

namespace weft {

/// Ids and tokens are 128 random bits in hex.
class JobPlace {
 public:
  /// Makes the control folder, mode 0700: $XDG_RUNTIME_DIR/weft/<id>, or /tmp/weft-<uid>/<id>
  /// where that can't be, and beside it <id>.lock, locked as long as this process lives. Removes
  /// what jobs have left whose lock nobody holds. Throws io.
  JobPlace();
  ~JobPlace() { remove(); }
  JobPlace(const JobPlace&) = delete;
  JobPlace& operator=(const JobPlace&) = delete;

  const std::string& id() const { return id_; }
  const std::string& token() const { return token_; }
  std::string socket_path() const { return folder_ + "/control"; }
  /// Where the workers read how this process's fit() calls before ended.
  std::string earlier_fits_path() const { return folder_ + "/earlier_fits"; }

  /// Throw no_space or io; what they made is removed with the place.
  Board make_board(const JobSpec& spec, const std::string& run_dir) const;
  JobMemory make_memory(int num_chips) const;

  /// Ends what the job owns, before the time for that where the process must go at once.
  void remove();

 private:
  std::string id_;
  std::string token_;
  std::string folder_;
  int lock_ = -1;
};

}  // namespace weft
