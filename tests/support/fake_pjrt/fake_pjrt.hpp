#pragma once
/// A PJRT plug-in for tests, in a shared library of its own. It checks how it is used, and does on
/// demand what real plug-ins do rarely: it refuses calls, holds runs, lacks functions, and has the
/// faults for which weft tests plug-ins.
///
/// It doesn't compile. A test gives it, by the name of a module, the function that computes the
/// module's results; the modules of weft's self-test are there from the beginning.

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
  std::string type;  ///< as in the text, such as "2x3xf32"
  std::span<std::byte> bytes;

  std::span<float> floats() const {
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }
};
struct FakeRun {
  std::vector<FakeArray> arguments;
  std::vector<FakeArray> results;
  std::set<std::string> false_flags;  ///< compiler flags that were set to false
};
using FakeModule = std::function<void(const FakeRun& run)>;

/// The plug-in's state, which tests read and change. Tests change it while no run is in progress.
struct FakePlugin {
  // These count from the moment at which the plug-in is loaded.
  int major = 0;
  int minor = 81;
  std::string lacks{};  ///< the name of a function that isn't in its table

  std::size_t device_count = 2;  ///< unless the option cpu_device_count is given
  std::string platform = "cpu";
  std::int64_t memory_limit_bytes = 0;  ///< 0: it has no statistics of memory
  std::map<std::string, FakeModule> modules{};
  std::set<std::string> known_flags{"xla_cpu_enable_fast_min_max", "xla_cpu_use_xnnpack"};
  /// By the name of a function: the code and the words of the error that each call returns.
  std::map<std::string, std::pair<int, std::string>> errors{};
  std::function<void()> on_client{};  ///< is called when a client is made

  bool holds_runs = false;      ///< runs don't begin until release()
  bool copies_results = false;  ///< never writes a result to the place of an argument
  bool keeps_weights = false;   ///< uses the first values it saw at an address
  bool loses_nan = false;       ///< maximum and minimum do, unless a flag is set
  bool flags_cure = true;       ///< its compiler flags cure the two faults before

  /// The texts of wrong uses, such as an object that was destroyed twice.
  std::vector<std::string> misuses{};
  /// The number of objects that haven't been destroyed.
  std::size_t live_objects = 0;
  int compilations = 0;

  std::function<void()> release{};  ///< begins the held runs
};

/// The functions of the library that tests look up by dlsym().
inline constexpr const char* kFakePluginSymbol = "weft_fake_plugin";
using FakePluginFunction = FakePlugin* (*)();

}  // namespace weft::testing
