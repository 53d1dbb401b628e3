#pragma once
/// BlackBoxWriter: a process's part in the black box of its job.
///
/// The box outlives the processes: whoever looks later reads what each thread did last. The trainer
/// makes it; each process reserves the memory of its own rings, so that a full /dev/shm is an error
/// there and not a SIGBUS in a step.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "transport/blackbox/arrival_ledger.hpp"
#include "transport/blackbox/event_writer.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

struct BlackBoxOptions {
  std::string job;
  int num_workers = 1;
  int num_chips = 0;
  TraceLevel level = TraceLevel::sampled;
  TickSource ticks = find_tick_source();
};

/// WEFT_TRACE: off, full, or, where it isn't set, sampled. Throws invalid_argument.
TraceLevel trace_level_of_environment();

class BlackBoxWriter {
 public:
  /// "weft-<job>-box".
  static std::string segment_name(std::string_view job);

  /// Throws invalid_argument for counts that no box has, and as Segment.
  static BlackBoxWriter create(const BlackBoxOptions& options);
  static BlackBoxWriter anonymous(const BlackBoxOptions& options);
  /// Throws not_found, version or corrupt.
  static BlackBoxWriter open(std::string_view job);

  BlackBoxWriter(BlackBoxWriter&&) noexcept;
  ~BlackBoxWriter();

  /// Writers of the rings of a worker, or with -1 of the trainer, and of a chip, whose texts are
  /// this worker's. The first call for each reserves memory, and throws no_space.
  EventWriter loop(int worker);
  EventWriter link(int worker);
  EventWriter shared(int worker);  ///< any thread of the process
  EventWriter chip(int chip, int worker);
  ArrivalLedger ledger(int chip);

  /// For readers to tell the time; called each second by the trainer.
  void add_clock_pair();
  void set_level(TraceLevel level);

 private:
  struct Process;
  BlackBoxWriter(Segment segment, TickSource source, int num_workers, int num_chips);
  static BlackBoxWriter make(Segment segment, const BlackBoxOptions& options);
  box_format::BoxHeaderV1& header() const;
  Process& process(int worker);
  EventWriter writer(Process& process, box_format::RingHead& head, std::byte* records,
                     std::uint32_t capacity) const;
  void mark_present(int number) const;
  std::byte* chip_memory(int chip);

  Segment segment_;
  TickSource source_;
  int num_workers_;
  int num_chips_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  std::map<int, std::unique_ptr<Process>> processes_;  // by worker; guarded by mutex_
};

}  // namespace weft
