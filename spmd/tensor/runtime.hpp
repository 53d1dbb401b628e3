#pragma once
/// Runtime: the interface by which the tensor API runs programs, implemented by workers and tests.

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

#include <weft/inspect/metrics.hpp>
#include <weft/sharding/mesh.hpp>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/program/program.hpp"
#include "spmd/tensor/tensor_source.hpp"

namespace weft {

/// A global tensor, stored in shards on the chips. Tensors share it, and the last of them frees it.
class Buffer {
 public:
  virtual ~Buffer() = default;
  const TensorType& type() const { return type_; }
  const Sharding& sharding() const { return sharding_; }
  /// No run overwrites a buffer that has holds. Only the loop's thread may call these functions.
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

/// The row-major elements of a global tensor, in host memory and equal on every worker.
using HostData = std::shared_ptr<const std::vector<std::byte>>;

/// An input of a run that is already on the chips.
struct BoundBuffer {
  BufferPtr buffer;
  bool is_of_one_tensor = false;
  /// Returns whether an output that updates this input may overwrite the buffer.
  bool may_be_overwritten() const { return is_of_one_tensor && buffer->num_holds() == 0; }
};
/// An input of a run: a buffer on the chips, elements on the host, or a source of elements.
using Binding = std::variant<BoundBuffer, HostData, SourcePtr>;

/// The value of state in an interrupted training loop or a checkpoint; monostate: no value.
struct Restored {
  std::variant<std::monostate, BufferPtr, SourcePtr> value{};
  std::optional<Sharding> laid_out{};  ///< layout for a source if the tensor isn't marked
  bool has_value() const { return value.index() != 0; }
};

/// The user's call for which a program runs.
struct RunSite {
  std::string_view function;  ///< such as "sync"; empty for a program of weft itself
  std::source_location loc;
  int max_programs = 0;  ///< maximum number of programs compiled for this site; 0: no limit
  bool ends_step = false;
  bool detects_anomaly = false;      ///< see detect_anomaly
  std::size_t num_numbers = 0;       ///< number of inputs that ChangingNumbers added
  std::string numbers_changed = {};  ///< numbers that became inputs with this program
};
std::string to_string(const RunSite& site);  ///< "the sync at train.cpp:41"; "" without a place
bool is_read(std::string_view site);         ///< whether the call reads a tensor, as item() does

/// All functions are called on the thread that runs the user's training loop.
class Runtime {
 public:
  virtual ~Runtime() = default;

  /// The mesh, null without the SPMD backend, and the positions of this worker's chips in the mesh.
  virtual const Mesh* mesh() const = 0;
  virtual std::span<const int> positions() const = 0;
  /// run() compiles the program, or finds it by `key` (its fingerprint), and starts it without
  /// waiting for its end. `inputs` has one binding per input, in order. `input_buffers` has the
  /// buffer of each input, also of inputs that were not on the chips before; `outputs` has a buffer
  /// per output. After a run, the old buffer of an input that an output updates must not be read.
  struct RunResult {
    std::vector<BufferPtr> input_buffers;
    std::vector<BufferPtr> outputs;
  };
  virtual RunResult run(const Program& program, const Fingerprint& key,
                        std::span<const Binding> inputs, const RunSite& site) = 0;
  /// Waits for the value of a replicated buffer and copies the global tensor.
  virtual std::vector<std::byte> read(const Buffer& buffer) = 0;
  virtual void wait() {}  ///< waits for all started programs; rethrows what a chip threw
  /// Returns the value that the continued loop or checkpoint has for the state of this name. Only
  /// one tensor gets a value on the chips, or another if the first is dropped before the first step
  /// ends. Throws invalid_argument if the types differ or the checkpoint lacks the name.
  virtual Restored take_restored(const std::string&, const TensorType&) { return {}; }
  /// Ends the job unless every worker makes this call at the same point with the same `text`.
  virtual void require_alike(const std::string& /*text*/, const RunSite& /*site*/) {}
  virtual bool has_restored(const std::string& /*name*/) const { return false; }
  /// Puts elements from the host on each chip as the state's next version, also if no program uses
  /// the state. The fourth parameter is its present buffer or null. Returns null without chips.
  virtual BufferPtr put_state(const ProgramInput& /*state*/, const TensorType&,
                              const std::vector<std::byte>& /*elements*/, const BufferPtr&,
                              const std::source_location& /*loc*/) {
    return nullptr;
  }
  virtual void changes_state(const StateChange&) {}  ///< called before each change of a state
  virtual std::uint64_t step() const = 0;  ///< number of ended steps, the same on every worker
  virtual void end_step() = 0;             ///< waits for permission to begin the next step
  virtual void warn(const std::string& text) = 0;    ///< warns of a mistake that isn't an error
  virtual bool is_session() const { return false; }  ///< outside of loops: without gradients

  MetricsTable& metrics() { return metrics_; }
  virtual void collect_metrics() {}  ///< adds metrics of the worker's other parts to the table

 private:
  MetricsTable metrics_;
};

/// Makes `runtime` run the thread's tensors until the scope ends, which drops ops not yet synced.
/// If `is_eager`, each op runs when it is recorded. Scopes nest. Tensors may outlive their scope.
class RuntimeScope {
 public:
  explicit RuntimeScope(Runtime& runtime, bool is_eager = false);
  ~RuntimeScope();
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

  /// Runs the remaining step closures, which may throw. Called at the end of the loop.
  void finish();

 private:
  std::unique_ptr<class Trace> trace_;
  int thread_;
  class Trace* outer_;  // the thread's previous trace
};

/// Returns a number that grows when the thread records an op, and when it runs a program.
std::uint64_t recorded_work();
/// Runs the thread's step closures whose steps have ended, so that their reports come before the
/// training loop's next report. Does nothing within a closure or outside of a training loop.
void run_step_closures();

}  // namespace weft
