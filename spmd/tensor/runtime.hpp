#pragma once
/// What the tensor API asks of whoever runs its programs: a worker, or a test.

#include <cstddef>
#include <cstdint>
#include <memory>
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

namespace weft {

/// A global tensor that lies, cut in shards, on the chips. Owned by tensors; freed with the last.
class Buffer {
 public:
  virtual ~Buffer() = default;
  const TensorType& type() const { return type_; }
  const Sharding& sharding() const { return sharding_; }

 protected:
  Buffer(const TensorType& type, const Sharding& sharding) : type_(type), sharding_(sharding) {}

 private:
  TensorType type_;
  Sharding sharding_;
};
using BufferPtr = std::shared_ptr<Buffer>;

/// Row-major elements of a global tensor in host memory, the same on every worker.
using HostData = std::shared_ptr<const std::vector<std::byte>>;

/// An input of a run: on the chips already, or to be cut and written by the runtime.
using Binding = std::variant<BufferPtr, HostData>;

/// The call of the user's that a program runs for.
struct RunSite {
  std::string_view function;  ///< "sync"; empty for a program of weft's own
  std::source_location loc;
  int max_programs = 0;  ///< that may be compiled for it; 0: any number
  bool ends_step = false;
  bool detects_anomaly = false;  ///< see detect_anomaly
};
/// "the sync at train.cpp:41"; "" for a site without a place.
std::string to_string(const RunSite& site);
/// Whether that is the site of a read.
bool is_read(std::string_view site);
/// What to say of workers of which one reads.
inline constexpr const char* kReadsAreCollective =
    "; reads are collective: item(), to_vector() and to_bytes() of what isn't computed yet, or "
    "lies "
    "in shards, are calls for every worker, whatever it does with the value";

/// Called by one thread: the one that runs the user's loop.
class Runtime {
 public:
  virtual ~Runtime() = default;

  /// The mesh; null without the SPMD backend.
  virtual const Mesh* mesh() const = 0;
  /// Compiles (or finds by `key`, its fingerprint) and starts the program; doesn't wait for it.
  /// One binding per input, in order; `input_buffers`: each input as it now lies on the chips
  /// (HostData became a buffer), `outputs`: a buffer per output. An output that updates an input
  /// replaces it: the old buffer must not be read again.
  struct RunResult {
    std::vector<BufferPtr> input_buffers;
    std::vector<BufferPtr> outputs;
  };
  virtual RunResult run(const Program& program, const Fingerprint& key,
                        std::span<const Binding> inputs, const RunSite& site) = 0;
  /// Waits for the buffer's value and copies the global tensor; the buffer's sharding must be
  /// replicated.
  virtual std::vector<std::byte> read(const Buffer& buffer) = 0;
  /// What the job has kept of a parameter or optimizer state of this name from a loop that was
  /// interrupted, for the loop that takes its place; null where there is nothing. It is for one
  /// tensor: the next call gives null, unless what the first gave was dropped before the loop's
  /// first step ended. Throws invalid_argument where that has another type.
  virtual BufferPtr take_restored(const std::string& name, const TensorType& type) {
    (void)name, (void)type;
    return nullptr;
  }
  /// The number of steps that have ended: the same on every worker.
  virtual std::uint64_t step() const = 0;
  /// Ends a step: waits for the lease of the next one. Called by sync().
  virtual void end_step() = 0;

  /// Says it to the user: a mistake that isn't an error.
  virtual void warn(const std::string& text) = 0;

  MetricsTable& metrics() { return metrics_; }
  /// Brings what others have measured into the table, before it is shown.
  virtual void collect_metrics() {}

 private:
  MetricsTable metrics_;
};

class Trace;

/// Makes `runtime` the one that runs the calling thread's tensors, until the scope ends. Scopes
/// nest. Tensors may outlive the scope; what was recorded and not synced is dropped.
class RuntimeScope {
 public:
  explicit RuntimeScope(Runtime& runtime);
  ~RuntimeScope();
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

  /// Runs the step closures that are left. At the end of the loop, where it may throw.
  void finish();

 private:
  std::unique_ptr<Trace> trace_;
  int thread_;
  Trace* outer_;  // the thread's trace before
};

/// Runs the step closures of the calling thread's loop that belong to steps that have ended: what
/// the loop says next comes after what they say. Nothing in a closure, and outside of a loop.
void run_step_closures();

}  // namespace weft
