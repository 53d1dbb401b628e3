#pragma once
/// Trainer: runs a loop on every worker of a mesh (Ray Train's TorchTrainer).

#include <concepts>
#include <functional>

#include <weft/actors/trainer/config.hpp>
#include <weft/actors/trainer/result.hpp>
#include <weft/actors/worker/train_context.hpp>

namespace weft {

/// The loop that every worker runs: `void(TrainContext&, const Config&)` or `void(TrainContext&)`.
/// It runs in other processes: what it changes by reference stays there, and its results go by
/// report(). Numbers come from the Config rather than from captures.
class TrainLoop {
 public:
  template <std::invocable<TrainContext&, const Config&> F>
  TrainLoop(F loop) : loop_(std::move(loop)) {}  // NOLINT(google-explicit-constructor)
  template <std::invocable<TrainContext&> F>
  requires(!std::invocable<F, TrainContext&, const Config&>)
      TrainLoop(F loop)  // NOLINT(google-explicit-constructor)
  {
    if constexpr (requires { loop == nullptr; }) {
      if (loop == nullptr) return;
    }
    loop_ = [loop = std::move(loop)](TrainContext& ctx, const Config&) { loop(ctx); };
  }

  void operator()(TrainContext& ctx, const Config& config) const { loop_(ctx, config); }
  /// False for an empty std::function or a null pointer.
  explicit operator bool() const { return static_cast<bool>(loop_); }

 private:
  std::function<void(TrainContext&, const Config&)> loop_;
};

/// One job. Workers are copies of this executable, started with the same arguments: what main()
/// does before fit() is done in each of them as well.
class Trainer {
 public:
  explicit Trainer(TrainLoop loop, TrainerOptions options = {});

  /// Validates, then runs the job to its end. A failed run is a Result with an error, not an
  /// exception. What is thrown: invalid_argument (also where another fit() of this process runs),
  /// mesh_mismatch, unavailable, no_space or io before anything has started, and whatever a
  /// callback threw. In a worker process this call runs the loop and doesn't return; earlier calls
  /// of main() return there what they returned in the trainer's process (or throw it as a
  /// weft::Error). Call it from the main thread.
  Result fit();

 private:
  TrainLoop loop_;
  TrainerOptions options_;
};

}  // namespace weft
