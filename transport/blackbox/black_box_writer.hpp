#pragma once
/// BlackBoxWriter: gives the threads of a process their rings in the job's black box.
///
/// The box outlives the processes, so a later reader sees what each thread did last. The trainer
/// makes the box, and each process reserves the memory of its own rings. Therefore a full /dev/shm
/// causes an error at that time, and not a SIGBUS in a step.

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

/// Parses the variable WEFT_TRACE: off, sampled (the default) or full. Throws invalid_argument.
TraceLevel trace_level_of_environment();

class BlackBoxWriter {
 public:
  /// Returns "weft-<job>-box".
  static std::string segment_name(std::string_view job);

  /// Creates the job's box. Throws invalid_argument if a box can't have that many workers or chips,
  /// and the errors of Segment.
  static BlackBoxWriter create(const BlackBoxOptions& options);
  static BlackBoxWriter anonymous(const BlackBoxOptions& options);
  /// Opens the job's box. Throws not_found, version or corrupt.
  static BlackBoxWriter open(std::string_view job);

  BlackBoxWriter(BlackBoxWriter&&) noexcept;
  ~BlackBoxWriter();

  /// loop(), link() and shared() return the writer of a ring of this worker (-1: the trainer).
  /// chip() returns the writer of a chip that `worker` drives. The first call for a worker or chip
  /// reserves the memory of its rings, and throws no_space if there is none.
  EventWriter loop(int worker);
  EventWriter link(int worker);
  EventWriter shared(int worker);  ///< for any thread of the process
  EventWriter chip(int chip, int worker);
  ArrivalLedger ledger(int chip);

  /// Records this moment as a pair of a tick and clock times, by which ticks are converted to
  /// times. Called each second.
  void add_clock_pair();
  void set_level(TraceLevel level);

 private:
  struct Process;
  BlackBoxWriter(Segment segment, TickSource source, int num_workers, int num_chips);
  static BlackBoxWriter make(Segment segment, const BlackBoxOptions& options);
  box_format::BoxHeaderV2& header() const;
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
