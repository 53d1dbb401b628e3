#pragma once
/// Loop: a training loop with a name, by which worker processes find it.

#include <cstdint>
#include <source_location>
#include <string>
#include <type_traits>

#include <weft/config.hpp>
#include <weft/train_context.hpp>

namespace weft {

struct LoopOptions {
  /// Runs in each worker process before it joins, on the thread of the loop: what the loop needs of
  /// the process, a locale or a log sink. What it throws fails the job.
  void (*setup)() = nullptr;
};

/// A variable of namespace scope, in the executable or in a shared library:
///
///   weft::Loop train_loop{"acme.train", [](weft::TrainContext& ctx, const MyConfig& c) {...}};
///
/// A worker process runs the loop of that name, and none of the program's main() but
/// weft::worker_main(), which it begins with. So a Loop is never a local variable: no worker would
/// have it.
class Loop {
 public:
  /// `body`: a function, an instance of a template, or a lambda without captures, of
  /// (TrainContext&), (TrainContext&, const Config&), or (TrainContext&, const C&), where C is any
  /// type that nlohmann::json converts to (from_json). Such a C is made of TrainerOptions::
  /// loop_config in the trainer too, before a process starts; if it has to_json as well, a key that
  /// C doesn't have is an error. `name` must live as long as the loop: a string literal.
  template <typename F>
  requires requires(F f) { +f; }
  Loop(const char* name, F body, LoopOptions options = {},
       std::source_location where = std::source_location::current())
      : Loop(name, bind(+body), options, where) {}
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  const char* name() const { return name_; }
  /// "train.cpp:12".
  std::string site() const;
  const LoopOptions& options() const { return options_; }
  /// In the object that has the loop, though its function may be another's.
  const void* address() const { return this; }

  /// Throws invalid_argument, with the loop's name, for a config that isn't one of this loop.
  void check(const Config& config) const;
  void run(TrainContext& ctx, const Config& config) const {
    body_.run(body_.function, ctx, config);
  }

  /// Throws invalid_argument where no worker process would have this loop, or not this one alone: a
  /// second one has its name, or it is a local variable.
  void require_findable() const;
  /// Null where there is none of that name. Throws invalid_argument where there are two.
  static const Loop* find(const std::string& name);
  /// "a, b", or "none".
  static std::string names();

 private:
  using Function = void (*)();
  struct Body {
    Function function = nullptr;
    void (*run)(Function, TrainContext&, const Config&) = nullptr;
    void (*check)(const Config&) = nullptr;
  };
  Loop(const char* name, Body body, LoopOptions options, std::source_location where);

  static Body bind(void (*body)(TrainContext&)) {
    return {reinterpret_cast<Function>(body),
            [](Function f, TrainContext& ctx, const Config&) {
              reinterpret_cast<void (*)(TrainContext&)>(f)(ctx);
            },
            nullptr};
  }
  template <typename C>
  static Body bind(void (*body)(TrainContext&, const C&)) {
    return {
        reinterpret_cast<Function>(body),
        [](Function f, TrainContext& ctx, const Config& config) {
          reinterpret_cast<void (*)(TrainContext&, const C&)>(f)(ctx, convert<C>(config));
        },
        [](const Config& config) {
          [[maybe_unused]] const C& converted = convert<C>(config);
          if constexpr (!std::is_same_v<C, Config> && std::is_constructible_v<Config, const C&>) {
            require_known_keys(config, Config(converted));
          }
        }};
  }
  /// A Config itself, or what it is converted to.
  template <typename C>
  static decltype(auto) convert(const Config& config) {
    if constexpr (std::is_same_v<C, Config>) {
      return static_cast<const Config&>(config);
    } else {
      return (config.is_null() ? Config::object() : config).template get<C>();
    }
  }
  /// Throws invalid_argument where `given` has a key that `taken`, made of it, doesn't have.
  static void require_known_keys(const Config& given, const Config& taken);

  const char* name_;
  Body body_;
  LoopOptions options_;
  std::source_location where_;
  bool is_late_;  ///< made after worker_main(), in an object that was there before
  Loop* next_;
};

// worker_main(): the first line of main() in a program whose jobs have worker processes.

/// In the application: returns at once, and workers of its named loops can be started from then on.
/// In a worker process: connects, runs the loop of its job and ends the process; nothing behind
/// this line runs there, and of what comes before it only constructors of static variables. Loops
/// without a name still run main() up to their fit().
void worker_main(int argc, char** argv);

/// Whether this process is a worker of a job: for static constructors that would open a port or
/// start a thread. May be called before main(), on any thread.
bool in_worker() noexcept;

/// The path of the program `weft-worker`, for ScalingConfig::worker_executable: it runs loops of
/// shared libraries whose host doesn't call worker_main(). Throws not_found.
std::string plugin_worker();

}  // namespace weft
