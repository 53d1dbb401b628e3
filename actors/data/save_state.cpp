// Saves state to a file for other programs.

#include <weft/train/state.hpp>

#include <algorithm>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>

#include <weft/sharding/chip.hpp>
#include <weft/tensor/error.hpp>
#include <weft/train/train_context.hpp>

#include "data/formats/safetensors.hpp"
#include "data/remote/output_file.hpp"
#include "data/remote/storages.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {
namespace {

/// The file, which only worker 0 writes. After an error, further writes do nothing and throw
/// nothing, so that worker 0 still takes part in the collective operations.
class SharedFile {
 public:
  explicit SharedFile(const std::string& path) : path_(path) {}

  template <typename Use>
  void try_to(Use use) {
    if (failure_ != nullptr) return;
    try {
      use();
    } catch (const Error&) {
      failure_ = std::current_exception();
    }
  }

  /// Throws on every worker if worker 0 could not write the file.
  void agree(TrainContext& context, const std::source_location& where) const {
    std::int32_t failed = failure_ != nullptr ? 1 : 0;
    if (context.mesh() != nullptr && context.world_size() > 1) {
      std::mutex mutex;
      const std::int32_t own = failed;
      context.on_each_chip(
          [&](Chip& chip) {
            std::int32_t any = own;
            chip.all_reduce(any, {}, ReduceKind::max);
            const std::lock_guard lock(mutex);
            failed = any;
          },
          where);
    }
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (failed != 0) {
      fail(Errc::io, "save(\"{}\") at {}: worker 0 couldn't write the file; its error says why",
           path_, file_line(where));
    }
  }

 private:
  const std::string path_;
  std::exception_ptr failure_;
};

}  // namespace

void save(std::span<const Parameter> state, const std::string& path,
          const std::map<std::string, std::string>& metadata, std::source_location where) {
  require_storage(path, "save: path");
  TrainContext& context = get_context();
  std::vector<NamedType> types;
  // PyTorch's loaders expect the key "format" in the header.
  std::map<std::string, std::string> with_format{{"format", "pt"}};
  for (const Parameter& parameter : state) {
    types.push_back({parameter.name(), parameter.type()});
    // Tied weights are stored once. Their other names refer to the stored name, in the same way as
    // in save_model() of safetensors.
    for (const std::string& alias : node_of(parameter, where)->aliases) {
      with_format[alias] = parameter.name();
    }
  }
  for (const auto& [key, value] : metadata) with_format[key] = value;
  // Every worker makes the header, so that a repeated name is an error on all workers.
  const SafetensorsLayout layout = write_safetensors_header(types, with_format);
  std::vector<std::size_t> order(state.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return layout.begins[i]; });

  const bool writes = context.world_rank() == 0;
  SharedFile shared(path);
  std::optional<OutputFile> file;
  shared.try_to([&] {
    if (!writes) return;
    file.emplace(path);
    file->write(layout.header);
  });
  for (const std::size_t i : order) {
    const std::vector<std::byte> elements = state[i].to_bytes(where);
    shared.try_to([&] {
      if (writes) file->write(elements);
    });
  }
  shared.try_to([&] {
    if (writes) file->finish();
  });
  shared.agree(context, where);
}

}  // namespace weft
