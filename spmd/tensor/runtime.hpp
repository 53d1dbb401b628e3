#pragma once
/// Runtime: through it the tensor API runs programs. A worker or a test implements it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <weft/mesh.hpp>
#include <weft/metrics.hpp>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/program/program.hpp"
#include "spmd/tensor/tensor_source.hpp"

namespace weft {

/// A global tensor in shards on the chips. Owned by tensors; freed with the last one.
class Buffer {
 public:
  virtual ~Buffer() = default;
  const TensorType& type() const { return type_; }
  const Sharding& sharding() const { return sharding_; }
  /// As long as there is a hold, no run writes over it. For the loop's thread.
  int num_holds() const { return num_holds_; }
  void add_holds(int count) { num_holds_ += count; }

 protected:
  Buffer(const TensorType& type, const Sharding& sharding) : type_(type), sharding_(sharding) {}

 private:
  TensorType type_;
  Sharding sharding_;
  int num_holds_ = 0;
};
using BufferPtr = std::shared_ptr<Buffer>;

/// Row-major elements of a global tensor in host memory, the same on every worker.
using HostData = std::shared_ptr<const std::vector<std::byte>>;

/// An input of a run that lies on the chips already.
struct BoundBuffer {
  BufferPtr buffer;
  bool is_of_one_tensor = false;
  /// Whether what updates this input may be written over it.
  bool may_be_overwritten() const { return is_of_one_tensor && buffer->num_holds() == 0; }
};
/// An input of a run: on the chips, or to be cut and written by the runtime, or to be read by it.
using Binding = std::variant<BoundBuffer, HostData, SourcePtr>;

/// The value of state of an interrupted loop, or of a checkpoint; nothing if there is none.
struct Restored {
  std::variant<std::monostate, BufferPtr, SourcePtr> value{};
  std::optional<Sharding> laid_out{};  ///< of a source: its layout on the chips if nobody marks it
  bool has_value() const { return value.index() != 0; }
};

/// The user's call for which a program runs.
struct RunSite {
  std::string_view function;  ///< "sync"; empty for a program of weft itself
  std::source_location loc;
  int max_programs = 0;  ///< maximum number of programs compiled for it; 0: no limit
  bool ends_step = false;
  bool detects_anomaly = false;      ///< see detect_anomaly
  std::size_t num_numbers = 0;       ///< inputs behind the others, see ChangingNumbers
  std::string numbers_changed = {};  ///< which of them have become inputs with this program
};
std::string to_string(const RunSite& site);  ///< "the sync at train.cpp:41"; "" without a place
bool is_read(std::string_view site);         ///< as item()

/// Called by one thread, which runs the user's loop.
class Runtime {
 public:
  virtual ~Runtime() = default;

  /// The mesh, null without the SPMD backend; and where the chips of this worker stand in it.
  virtual const Mesh* mesh() const = 0;
  virtual std::span<const int> positions() const = 0;
  /// Compiles the program (or finds it by `key`, its fingerprint) and starts it; doesn't wait. One
  /// binding per input, in order. `input_buffers`: the buffer of each input, also of those that
  /// were not on the chips before; `outputs`: a buffer per output. An output that updates an input
  /// replaces it: the old buffer must not be read again.
  struct RunResult {
    std::vector<BufferPtr> input_buffers;
    std::vector<BufferPtr> outputs;
  };
  virtual RunResult run(const Program& program, const Fingerprint& key,
                        std::span<const Binding> inputs, const RunSite& site) = 0;
  /// Waits for the value of a replicated buffer and copies the global tensor.
  virtual std::vector<std::byte> read(const Buffer& buffer) = 0;
  virtual void wait() {}  ///< for all that was started; throws what a chip threw
  /// The value of state of this name in the loop, or the checkpoint, that this loop continues. One
  /// tensor gets a value that is on the chips, until it was dropped before the first step ended.
  /// Throws invalid_argument if the value has another type, or the checkpoint lacks the name.
  virtual Restored take_restored(const std::string&, const TensorType&) { return {}; }
  /// Ends the job unless every worker calls it at the same point with the same lines.
  virtual void require_alike(const std::string& /*text*/, const RunSite& /*site*/) {}
  virtual bool has_restored(const std::string& /*name*/) const { return false; }
  /// Puts elements that the host has given state on the chips, whole, as its next version, whether
  /// or not a program uses it. `before`: its buffer so far, or null. Null where there are no chips.
  virtual BufferPtr put_state(const ProgramInput& /*state*/, const TensorType&,
                              const std::vector<std::byte>& /*elements*/, const BufferPtr&,
                              const std::source_location& /*loc*/) {
    return nullptr;
  }
  virtual void changes_state(const StateChange&) {}  ///< called before each change
  virtual std::uint64_t step() const = 0;  ///< steps that have ended: the same on every worker
  virtual void end_step() = 0;             ///< waits for permission to begin the next step
  virtual void warn(const std::string& text) = 0;  ///< of a mistake that isn't an error

  MetricsTable& metrics() { return metrics_; }
  virtual void collect_metrics() {}  ///< adds those of other parts of the worker to the table

 private:
  MetricsTable metrics_;
};

/// Makes `runtime` run the thread's tensors until the scope ends, when ops not synced are dropped;
/// if `is_eager`, each op when it is recorded. Scopes nest. Tensors may outlive them.
class RuntimeScope {
 public:
  explicit RuntimeScope(Runtime& runtime, bool is_eager = false);
  ~RuntimeScope();
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

  /// Runs the remaining step closures. Called at the end of the loop, where it may throw.
  void finish();

 private:
  std::unique_ptr<class Trace> trace_;
  int thread_;
  class Trace* outer_;  // the thread's trace before
};

/// Grows with each op that the thread's loop records and each program that it runs.
std::uint64_t recorded_work();
/// Runs the thread's step closures whose steps have ended, so that their reports come before the
/// loop's next one. Does nothing within a closure or outside of a loop.
void run_step_closures();

}  // namespace weft
