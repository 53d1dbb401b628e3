#pragma once
/// A PJRT plug-in for tests, in a shared library of its own. It checks the calls that it gets. When
/// a test requests it, the plug-in does what real plug-ins do rarely: it refuses calls, holds runs,
/// lacks functions, or has the faults that weft's self-test detects.
///
/// It compiles nothing. Instead, a test provides a function for each module, by the module's name,
/// which computes the module's results. The modules of weft's self-test are built in.

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
  std::string type;  ///< the type in the module's text, such as "2x3xf32"
  std::span<std::byte> bytes;

  std::span<float> floats() const {
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }
};
struct FakeRun {
  std::vector<FakeArray> arguments;
  std::vector<FakeArray> results;
  std::set<std::string> false_flags;  ///< the compiler flags with the value false
  std::size_t replica = 0;
};
using FakeModule = std::function<void(const FakeRun& run)>;

/// The plug-in's state. Tests read it at any time, and change it while no run is in progress.
struct FakePlugin {
  // The plug-in reads the next three fields when weft loads it. Later changes have no effect.
  int major = 0;
  int minor = 81;
  std::string lacks{};  ///< the name of a function that is missing in the table

  std::size_t device_count = 2;  ///< used unless the option cpu_device_count is given
  std::string platform = "cpu";
  std::int64_t memory_limit_bytes = 0;  ///< 0: the plug-in has no memory statistics
  std::map<std::string, FakeModule> modules{};
  std::set<std::string> known_flags{"xla_cpu_enable_fast_min_max", "xla_cpu_use_xnnpack"};
  /// The code and message of the error that each call of a function returns, by the function's
  /// name.
  std::map<std::string, std::pair<int, std::string>> errors{};
  std::function<void()> on_client{};  ///< called when a client is made

  bool holds_runs = false;      ///< runs don't begin until release()
  bool holds_copies = false;    ///< copies to the host don't end until release()
  bool copies_results = false;  ///< runs never write a result to the memory of an argument
  bool keeps_weights = false;   ///< runs read the first values that were at an argument's address
  bool loses_nan = false;       ///< maximum and minimum lose NaNs
  bool flags_cure = true;       ///< flags switch off `keeps_weights` and `loses_nan`

  /// Descriptions of wrong calls, such as one that destroys an object twice.
  std::vector<std::string> misuses{};
  /// The number of objects that exist.
  std::size_t live_objects = 0;
  int compilations = 0;
  std::size_t bytes_to_host = 0;  ///< the sum over all copies to the host

  std::function<void()> release{};      ///< does the runs and copies that are held
  std::function<std::size_t()> held{};  ///< returns how many runs and copies are held
};

/// The name and the type of the function that tests look up with dlsym().
inline constexpr const char* kFakePluginSymbol = "weft_fake_plugin";
using FakePluginFunction = FakePlugin* (*)();

}  // namespace weft::testing
