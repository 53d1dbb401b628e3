#pragma once
/// Finds the PJRT plug-ins of this machine, without loading them.

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <weft/sharding/device.hpp>

namespace weft::pjrt {

/// The file of a plug-in.
struct PluginFile {
  std::string path;
  /// The kind of the plug-in's devices, if the name of the file or of its folder tells it.
  std::optional<DeviceKind> kind;
  std::string found_by;  ///< the name of an environment variable, or the folder of Python packages
  std::string package_folder{};  ///< the folder of Python packages that contains the file; "": none
};

/// A function that returns the value of an environment variable, or null.
using Variable = std::function<const char*(const char* name)>;

/// Returns the plug-ins in the order in which they are tried:
///  - the file in WEFT_PJRT_PLUGIN. If it is set, no other plug-in is used;
///  - those in PJRT_NAMES_AND_LIBRARY_PATHS ("cuda:/path/a.so,tpu:/path/b.so");
///  - the one in TPU_LIBRARY_PATH;
///  - those in the folders of Python packages: of PYTHONPATH, VIRTUAL_ENV and CONDA_PREFIX, of each
///    Python in PATH, and of the user. No Python is started.
/// A plug-in that has several paths is returned once. Throws not_found, with the variable's name,
/// if a variable names a file that doesn't exist, and invalid_argument if
/// PJRT_NAMES_AND_LIBRARY_PATHS has another form.
std::vector<PluginFile> find_plugins(const Variable& variable = ::getenv);

/// Returns the first plug-in that is for devices of this kind. A plug-in of unknown kind counts
/// unless `must_be_known`. Throws the errors of find_plugins().
std::optional<PluginFile> find_plugin(DeviceKind kind, bool must_be_known = false,
                                      const Variable& variable = ::getenv);

/// Loads NVIDIA's libraries from the Python packages next to a plug-in for GPUs, because the
/// plug-in doesn't find them itself. Skips libraries that can't be loaded, because the plug-in's
/// own error names those that it lacks. Does nothing for other plug-ins.
void preload_libraries(const PluginFile& file);

/// Returns the variable that lists which GPUs or TPUs processes may see.
const char* visibility_variable(DeviceKind kind);

/// Returns the command that installs a plug-in for chips of this kind.
std::string_view install_command(DeviceKind kind);

}  // namespace weft::pjrt
