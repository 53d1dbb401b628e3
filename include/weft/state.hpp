#pragma once
/// The state of models and optimizers, to files and from files.

#include <functional>
#include <map>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/module.hpp>
#include <weft/optim.hpp>

namespace weft {

/// The parameters and buffers of a module, then the state of optimizers: what save() writes and
/// load() fills.
template <typename... Optimizers>
std::vector<Parameter> state_dict(const Module& module, const Optimizers&... optimizers) {
  std::vector<Parameter> state = module.parameters();
  const auto append = [&](const std::vector<Parameter>& more) {
    state.insert(state.end(), more.begin(), more.end());
  };
  append(module.buffers());
  (append(optimizers.state()), ...);
  return state;
}

/// Writes parameters, buffers and optimizer state to a safetensors file, which PyTorch and others read, and
/// load(): whole, or not at all. All workers must call it, because it reads the tensors as
/// to_bytes() does; worker 0 writes. `metadata` goes to the file as it is. Throws invalid_argument
/// for a name that is there twice; io or no_space on worker 0 if the file can't be written, and io
/// on the others.
void save(std::span<const Parameter> state, const std::string& path,
          const std::map<std::string, std::string>& metadata = {},
          std::source_location where = std::source_location::current());
inline void save(const Module& module, const std::string& path,
                 const std::map<std::string, std::string>& metadata = {},
                 std::source_location where = std::source_location::current()) {
  save(state_dict(module), path, metadata, where);
}

struct LoadOptions {
  /// Tensors that the file lacks keep their values, and others of the file are left out. Without
  /// it, either is an error.
  bool partial = false;
  /// The name that a tensor has in the file. Default: its own.
  std::function<std::string(std::string_view name)> rename{};
  /// Elements of another dtype are converted: between f16, bf16, f32 and f64, rounded to nearest
  /// even, and from narrower to wider integers. Without it, another dtype is an error.
  bool cast = false;
};

struct LoadResult {
  // What LoadOptions::partial let pass, as torch's load_state_dict() returns it.
  std::vector<std::string> missing;     ///< of the given state
  std::vector<std::string> unexpected;  ///< of the file
  /// As it was given to save(), or to another program that wrote the file.
  std::map<std::string, std::string> metadata;
};

/// Gives parameters, buffers and optimizer state their values by name from `path`: a checkpoint's folder, a
/// safetensors file, or a folder with model.safetensors or model.safetensors.index.json (as Hugging
/// Face has them). Returns once the names, shapes and dtypes are found to fit; the elements are
/// read at the first use, by each worker those of its chips, straight to their place. Tensors that
/// are on the chips already stay laid out as they are. Others are laid out as they were saved if
/// the mesh is the same and nobody marks them. The optimizer state in a checkpoint is left out if
/// none is given.
///
/// All workers must call it, and be able to read `path`. In a loop that begins again after the loss
/// of a worker, state that was kept goes before the file. Throws invalid_argument with all names,
/// shapes and dtypes that don't fit; not_found, corrupt, version or io if the file can't be read,
/// at the first use too.
LoadResult load(std::span<const Parameter> state, const std::string& path,
                const LoadOptions& options = {},
                std::source_location where = std::source_location::current());
inline LoadResult load(const Module& module, const std::string& path,
                       const LoadOptions& options = {},
                       std::source_location where = std::source_location::current()) {
  return load(state_dict(module), path, options, where);
}

}  // namespace weft
