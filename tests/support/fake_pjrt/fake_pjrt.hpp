#pragma once
/// A PJRT plug-in for tests, in a shared library of its own. It checks its callers, and does on
/// demand what real plug-ins do rarely: it refuses calls, holds runs, lacks functions, and has the
/// faults that weft's self-test detects.
///
/// It compiles nothing. For each module, a test provides the function that computes the module's
/// results, by the module's name. The modules of weft's self-test are built in.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weft::testing {

/// An argument or a result of a module.
struct FakeArray {
  std::string type;  ///< as in the module's text, such as "2x3xf32"
  std::span<std::byte> bytes;

  std::span<float> floats() const {
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }
};
struct FakeRun {
  std::vector<FakeArray> arguments;
  std::vector<FakeArray> results;
  std::set<std::string> false_flags;  ///< compiler flags that were set to false
  std::size_t replica = 0;
};
using FakeModule = std::function<void(const FakeRun& run)>;

/// The plug-in's state, which tests read and change. Tests change it while no run is in progress.
struct FakePlugin {
  // The plug-in reads these three when weft loads it; later changes have no effect.
  int major = 0;
  int minor = 81;
  std::string lacks{};  ///< the name of a function that the table lacks

  std::size_t device_count = 2;  ///< if the option cpu_device_count isn't given
  std::string platform = "cpu";
  std::int64_t memory_limit_bytes = 0;  ///< 0: memory statistics aren't supported
  std::map<std::string, FakeModule> modules{};
  std::set<std::string> known_flags{"xla_cpu_enable_fast_min_max", "xla_cpu_use_xnnpack"};
  /// By the name of a function: the code and the message of the error that each call returns.
  std::map<std::string, std::pair<int, std::string>> errors{};
  std::function<void()> on_client{};  ///< is called when a client is made

  bool holds_runs = false;      ///< runs don't begin until release()
  bool holds_copies = false;    ///< copies to the host aren't done until release()
  bool copies_results = false;  ///< never writes a result to the place of an argument
  bool keeps_weights = false;   ///< uses the first values that were at an address
  bool loses_nan = false;       ///< maximum and minimum drop NaNs
  bool flags_cure = true;       ///< compiler flags switch off the last two faults

  /// Descriptions of wrong calls, such as one that destroys an object twice.
  std::vector<std::string> misuses{};
  /// The number of objects that haven't been destroyed.
  std::size_t live_objects = 0;
  int compilations = 0;
  std::size_t bytes_to_host = 0;  ///< of all copies to the host

  std::function<void()> release{};      ///< does what is held
  std::function<std::size_t()> held{};  ///< returns the number of runs and copies that are held
};

/// The name and the type of the function that tests look up with dlsym().
inline constexpr const char* kFakePluginSymbol = "weft_fake_plugin";
using FakePluginFunction = FakePlugin* (*)();

}  // namespace weft::testing
