#pragma once
/// TrainLoop: a training loop without a name.

#include <concepts>
#include <functional>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <weft/actors/trainer/config.hpp>
#include <weft/actors/worker/train_context.hpp>

namespace weft {

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

  /// What tells it from other loops, as far as a process can say of its own code.
  const char* type() const { return type_; }
  /// Two of its type may do different things, as std::function's do.
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

}  // namespace weft
