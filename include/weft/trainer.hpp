#pragma once
/// Trainer: runs a loop on every worker of a mesh (Ray Train's TorchTrainer).

#include <concepts>
#include <functional>
#include <source_location>
#include <stop_token>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <weft/config.hpp>
#include <weft/job.hpp>
#include <weft/loop.hpp>
#include <weft/result.hpp>
#include <weft/train_context.hpp>

namespace weft {

// TrainLoop: a training loop without a name.

/// The loop that every worker runs: `void(TrainContext&, const Config&)` or `void(TrainContext&)`.
/// It runs in other processes: what it changes by reference stays there, and its results go by
/// report(). Numbers come from the Config rather than from captures.
class TrainLoop {
 public:
  template <std::invocable<TrainContext&, const Config&> F>
  TrainLoop(F loop)  // NOLINT(google-explicit-constructor)
      : type_(typeid(F).name()), has_captures_(captures<F>()), address_(address_of(loop)) {
    loop_ = std::move(loop);
  }
  template <std::invocable<TrainContext&> F>
  requires(!std::invocable<F, TrainContext&, const Config&>)
      TrainLoop(F loop)  // NOLINT(google-explicit-constructor)
      : type_(typeid(F).name()), has_captures_(captures<F>()), address_(address_of(loop)) {
    if constexpr (requires { loop == nullptr; }) {
      if (loop == nullptr) return;
    }
    loop_ = [loop = std::move(loop)](TrainContext& ctx, const Config&) { loop(ctx); };
  }

  void operator()(TrainContext& ctx, const Config& config) const { loop_(ctx, config); }
  /// False for an empty std::function or a null pointer.
  explicit operator bool() const { return static_cast<bool>(loop_); }

  /// Identifies the loop, as far as a process can describe its own code.
  const char* type() const { return type_; }
  /// True where two loops of this type may do different things, as with std::function.
  bool has_captures() const { return has_captures_; }
  /// Of a function; else null.
  const void* address() const { return address_; }

 private:
  template <typename F>
  static constexpr bool captures() {
    return !std::is_pointer_v<F> && !std::is_empty_v<F>;
  }
  template <typename F>
  static const void* address_of(const F& loop) {
    if constexpr (std::is_pointer_v<F>) return reinterpret_cast<const void*>(loop);
    return nullptr;
  }

  const char* type_;
  bool has_captures_;
  const void* address_;
  std::function<void(TrainContext&, const Config&)> loop_;
};

/// Jobs of one loop. A loop with a name (Loop) may run in any number of jobs at once, started on
/// any thread, in a program that calls weft::worker_main() first. For one without, main() runs
/// again in each worker process, with the same arguments, up to the same fit() call.
class Trainer {
 public:
  explicit Trainer(const Loop& loop, TrainerOptions options = {});
  explicit Trainer(TrainLoop loop, TrainerOptions options = {});

  /// Validates, then runs a job to its end. A job that fails, or is told to end (by `stop`, as
  /// Job::stop() does, or by a signal), gives a Result with an error, not an exception. What is
  /// thrown: invalid_argument, mesh_mismatch, not_found, unavailable, version, no_space or io
  /// before anything has started, and whatever a callback threw.
  ///
  /// A loop without a name, in a worker process: the call of the job runs the loop and doesn't
  /// return; calls before it return there what they returned in the trainer's process (or throw it
  /// as a weft::Error). One such job with workers runs at a time.
  Result fit(std::stop_token stop = {},
             std::source_location where = std::source_location::current());

  /// The same in the background, for loops with names, or without workers (num_workers = 0). Throws
  /// what fit() throws before anything has started.
  Job start(std::source_location where = std::source_location::current());

 private:
  const Loop* named_ = nullptr;
  TrainLoop loop_;
  TrainerOptions options_;
};

}  // namespace weft
