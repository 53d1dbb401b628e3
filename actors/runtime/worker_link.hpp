#pragma once
/// WorkerLink: connects a worker to the trainer, and starts the actors of its process.

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "actors/commands/command_messages.hpp"
#include "actors/device/device_link.hpp"
#include "actors/link/environment.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/protocol/save_messages.hpp"
#include "actors/supervision/permits.hpp"
#include "transport/blackbox/recorder.hpp"

namespace weft {

/// Records the link's messages. One row and ring get the messages that its actor receives, and
/// another ring gets those that any thread sends.
struct LinkRecorder {
  Recorder actor{};
  EventWriter threads{};
};

/// Only the loop's thread may use it, except that any thread may call loop_ended(), preempt(),
/// state_hashed(), part_written(), save_ended() and wire_lost(). Only join() blocks.
class WorkerLink {
 public:
  /// Connects to the trainer, with an actor system for this connection. Throws the errors of
  /// System::dial() and require_sound().
  static std::unique_ptr<WorkerLink> connect(const WorkerEnvironment& environment,
                                             std::chrono::milliseconds timeout,
                                             const LinkRecorder& recorder);
  virtual ~WorkerLink() = default;

  Permits& permits() { return *permits_; }

  /// Joins the job. If the trainer refuses, throws an error with its reason.
  virtual Assignment join(const JoinRequest& request) = 0;
  virtual void show_program(const ProgramSeen& program) = 0;
  virtual void want_lease(std::uint64_t step) = 0;
  virtual void report(const Report& report) = 0;
  /// Asks the trainer to end the job for `reason`.
  virtual void preempt(const std::string& reason) = 0;
  virtual void state_hashed(const StateHashes& hashes) = 0;
  virtual void data_hashed(const DataHashes& hashes) = 0;
  virtual void part_written(const PartWritten& part) = 0;
  virtual void save_ended(const SaveEnded& ended) = 0;
  virtual void commands_read(const CommandsRead& read) = 0;
  virtual void awaits_commands(const CommandsAwaited& awaited) = 0;
  virtual void loop_ended(const LoopEnded& ended) = 0;
  /// Reports that the loop of the generation before `generation` was left, and that the chips do
  /// none of its work any more. `committed` is the last step that all chips of this host have
  /// committed.
  virtual void unwound(std::uint64_t generation, std::uint64_t committed) = 0;
  /// Reports the addresses at which chips of other hosts reach chips of this worker.
  virtual void wires_listen(const WireAddresses& addresses) = 0;
  virtual void wire_lost(const WireLost& lost) = 0;
  virtual std::unique_ptr<DeviceLink> start_device(std::unique_ptr<Engine> engine,
                                                   const Recorder& recorder, int chip,
                                                   DeviceFailed on_failure) = 0;

 protected:
  explicit WorkerLink(std::shared_ptr<Permits> permits) : permits_(std::move(permits)) {}
  const std::shared_ptr<Permits>& shared_permits() const { return permits_; }

 private:
  std::shared_ptr<Permits> permits_;
};

}  // namespace weft
