#pragma once
/// LocalHost: the link to the host on which this process runs.

#include "actors/trainer/host_link.hpp"
#include "actors/trainer/job_spec.hpp"
#include "transport/board/board.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// Calls the memory, the board and the kernel directly, and sends no messages.
class LocalHost final : public HostLink {
 public:
  /// The three arguments must outlive the link.
  LocalHost(JobMemory& memory, Board& board, const JobSpec& spec)
      : memory_(memory), board_(board), spec_(spec) {}

  std::uint64_t common_step() const override;
  bool has_whole_state() const override;
  void begin_generation(std::uint64_t step) override { memory_.begin_generation(step); }
  void abort(std::string_view why) override { memory_.abort(why); }
  void remove_arena_names() override { memory_.remove_arena_names(); }

  std::vector<ActorRow> rows() const override { return board_.readable_rows(); }
  Whereabouts locate(int worker) const override;
  std::string describe_process(const ProcessId& process) const override;
  std::uint64_t core_time(const ProcessId& process) const override;

  void copy_rows(const HostNews& news) override;
  void mark_lost(int worker, std::string_view why) override;
  void set_status(JobStatus status) override { board_.set_status(status); }

 private:
  JobMemory& memory_;
  Board& board_;
  const JobSpec& spec_;
};

}  // namespace weft
