#include "chips/pjrt/discovery.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <weft/tensor/error.hpp>

namespace weft::pjrt {
namespace {

namespace fs = std::filesystem;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// Returns the entries of a folder, sorted by name, or none if the folder can't be read.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    found.push_back(at->path());
  }
  std::ranges::sort(found);
  return found;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::optional<DeviceKind> kind_of(const fs::path& path) {
  // In jax_plugins/xla_cuda13/xla_cuda_plugin.so, both the folder and the file tell the kind.
  const std::string name = path.parent_path().filename().string() + "/" + path.filename().string();
  const auto has = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  if (has("tpu")) return DeviceKind::tpu;
  if (has("cuda") || has("rocm") || has("gpu") || has("oneapi")) return DeviceKind::gpu;
  if (has("cpu")) return DeviceKind::cpu;
  return std::nullopt;
}

class PluginSearch {
 public:
  explicit PluginSearch(const Variable& variable) : variable_(variable) {}

  std::vector<PluginFile> find() {
    if (const std::string only = value("WEFT_PJRT_PLUGIN"); !only.empty()) {
      add_named(only, "WEFT_PJRT_PLUGIN");
      return std::move(found_);
    }
    add_names_and_paths();
    if (const std::string tpu = value("TPU_LIBRARY_PATH"); !tpu.empty()) {
      add_named(tpu, "TPU_LIBRARY_PATH");
    }
    for (const fs::path& folder : package_folders()) add_packages(folder);
    return std::move(found_);
  }

 private:
  std::string value(const char* name) const {
    const char* const text = variable_(name);
    return text == nullptr ? "" : text;
  }

  void add(PluginFile file) {
    const auto is_same = [&](const PluginFile& other) {
      std::error_code ignored;
      return fs::equivalent(other.path, file.path, ignored);
    };
    if (std::ranges::none_of(found_, is_same)) found_.push_back(std::move(file));
  }

  void add_named(const std::string& path, const std::string& variable) {
    if (!is_file(path)) {
      fail(Errc::not_found,
           "{} = \"{}\": this file doesn't exist; expected the path of a PJRT plug-in", variable,
           path);
    }
    add({.path = path, .kind = kind_of(path), .found_by = variable});
  }

  void add_names_and_paths() {
    constexpr const char* kVariable = "PJRT_NAMES_AND_LIBRARY_PATHS";
    const std::string text = value(kVariable);
    for (const std::string_view part : split(text, ',')) {
      const std::size_t colon = part.find(':');
      if (colon == std::string_view::npos) {
        fail(Errc::invalid_argument,
             "{} = \"{}\": expected names and paths, such as \"cuda:/path/plugin.so\", but \"{}\" "
             "has no colon",
             kVariable, text, part);
      }
      add_named(std::string(part.substr(colon + 1)), kVariable);
      if (const auto kind = kind_of(part.substr(0, colon))) found_.back().kind = kind;
    }
  }

  /// Returns the folders of Python packages in the order of the search, most specific first.
  std::vector<fs::path> package_folders() const {
    std::vector<fs::path> folders;
    const std::string python_path = value("PYTHONPATH");
    for (const std::string_view folder : split(python_path, ':')) folders.emplace_back(folder);
    std::vector<fs::path> prefixes;
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
      if (const std::string prefix = value(name); !prefix.empty()) prefixes.emplace_back(prefix);
    }
    if (const std::string home = value("HOME"); !home.empty()) {
      prefixes.push_back(fs::path(home) / ".local");
    }
    const std::string path = value("PATH");
    for (const fs::path folder : split(path, ':')) {
      if (is_file(folder / "python3")) prefixes.push_back(folder.parent_path());
    }
    for (const fs::path& prefix : prefixes) {
      for (const fs::path& version : entries(prefix / "lib")) {
        if (!version.filename().string().starts_with("python3")) continue;
        folders.push_back(version / "site-packages");
        folders.push_back(version / "dist-packages");
      }
    }
    return folders;
  }

  void add_packages(const fs::path& folder) {
    const auto add_libraries = [&](const fs::path& package, auto&& is_plugin) {
      for (const fs::path& file : entries(package)) {
        if (!is_file(file) || !is_plugin(file.filename().string())) continue;
        add({file.string(), kind_of(file), folder.string(), folder.string()});
      }
    };
    const auto is_library = [](const std::string& name) { return name.ends_with(".so"); };
    for (const char* plugins : {"jax_plugins", "xla_plugins"}) {
      for (const fs::path& package : entries(folder / plugins)) {
        add_libraries(package, is_library);
      }
    }
    add_libraries(folder / "libtpu", [](const std::string& name) { return name == "libtpu.so"; });
    // Other packages may contain plug-ins of XLA's own build, such as pjrt_c_api_cpu_plugin.so.
    for (const fs::path& package : entries(folder)) {
      add_libraries(package, [&](const std::string& name) {
        return name.starts_with("pjrt_c_api_") && is_library(name);
      });
    }
  }

  const Variable& variable_;
  std::vector<PluginFile> found_{};
};

/// NVIDIA's libraries, each after the libraries that it needs.
constexpr std::string_view kNvidiaLibraries[] = {
    "libcudart.so",   "libnvJitLink.so", "libcublasLt.so",     "libcublas.so",
    "libcusparse.so", "libcusolver.so",  "libcufft.so",        "libcupti.so",
    "libcudnn.so",    "libnccl.so",      "libnvshmem_host.so",
};

}  // namespace

std::vector<PluginFile> find_plugins(const Variable& variable) {
  return PluginSearch(variable).find();
}

std::optional<PluginFile> find_plugin(DeviceKind kind, bool must_be_known,
                                      const Variable& variable) {
  for (PluginFile& file : find_plugins(variable)) {
    if (file.kind ? *file.kind == kind : !must_be_known) return std::move(file);
  }
  return std::nullopt;
}

void preload_libraries(const PluginFile& file) {
  if (file.kind != DeviceKind::gpu || file.package_folder.empty()) return;
  std::vector<fs::path> files;
  for (const fs::path& package : entries(fs::path(file.package_folder) / "nvidia")) {
    for (const fs::path& library : entries(package / "lib")) files.push_back(library);
  }
  for (const std::string_view name : kNvidiaLibraries) {
    for (const fs::path& library : files) {
      if (!library.filename().string().starts_with(name)) continue;
      static_cast<void>(::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL));
    }
  }
}

const char* visibility_variable(DeviceKind kind) {
  return kind == DeviceKind::tpu ? "TPU_VISIBLE_CHIPS" : "CUDA_VISIBLE_DEVICES";
}

std::string_view install_command(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::gpu: return "pip install 'jax-cuda13-plugin[with-cuda]'";
    case DeviceKind::tpu: return "pip install libtpu";
    case DeviceKind::cpu:
    case DeviceKind::pjrt_cpu:
    case DeviceKind::pjrt_mirrored:
    case DeviceKind::automatic: break;
  }
  return "pip install lammps-jax-pjrt-cpu";
}

}  // namespace weft::pjrt
