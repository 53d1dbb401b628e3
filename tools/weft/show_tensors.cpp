#include "tools/weft/show_tensors.hpp"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <weft/error.hpp>

#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/table.hpp"
#include "transport/memory/utf8.hpp"
#include "transport/storage/checkpoint_reader.hpp"
#include "transport/storage/state_file.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

/// "[{"data"}, {}]"; "" where it isn't known.
std::string layout(const FileTensor& tensor, const StateFile& file) {
  if (!tensor.sharding || !file.mesh()) return "";
  return tensor.sharding->to_string(*file.mesh(), tensor.shape.size());
}

std::string size_text(std::int64_t bytes) {
  if (bytes < (1 << 20)) return fmt::format("{} bytes", bytes);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::int64_t total_bytes(const StateFile& file) {
  std::int64_t bytes = 0;
  for (const FileTensor& tensor : file.tensors()) bytes += tensor.bytes();
  return bytes;
}

/// What verify_checkpoint() found; of safetensors nothing can be said.
std::vector<std::string> faults_of(const StateFile& file) {
  const CheckpointManifest* manifest = file.checkpoint();
  if (manifest == nullptr) {
    fail(Errc::invalid_argument,
         "--verify: {} is safetensors, which have no checksums; its header is valid", file.path());
  }
  return verify_checkpoint(file.path(), *manifest);
}

Json to_json(const StateFile& file) {
  Json json{{"path", file.path()}, {"bytes", total_bytes(file)}, {"tensors", Json::array()}};
  if (const CheckpointManifest* manifest = file.checkpoint()) {
    json["step"] = manifest->step;
    json["seed"] = manifest->seed;
    json["mesh"] = {{"shape", manifest->mesh_shape}, {"axes", manifest->axis_names}};
    json["files"] = manifest->files;
  }
  for (const FileTensor& tensor : file.tensors()) {
    Json entry{{"name", tensor.name},
               {"dtype", tensor.dtype_name},
               {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
               {"bytes", tensor.bytes()}};
    if (file.checkpoint() != nullptr) {
      entry["kind"] = to_string(tensor.kind);
      entry["sharding"] = layout(tensor, file);
    }
    json["tensors"].push_back(std::move(entry));
  }
  return json;
}

void print(const StateFile& file) {
  const CheckpointManifest* manifest = file.checkpoint();
  fmt::print("{}  {} tensors  {}\n", visible(file.path()), file.tensors().size(),
             size_text(total_bytes(file)));
  if (manifest != nullptr) {
    fmt::print("step {}  seed {}  mesh {}  {} part{}\n", manifest->step, manifest->seed,
               file.mesh() ? visible(file.mesh()->to_string()) : "none", manifest->files.size(),
               manifest->files.size() == 1 ? "" : "s");
  }
  fmt::print("\n");
  Table table({{"tensor"}, {"type"}, {"kind"}, {"sharding"}, {"bytes", Align::right}});
  for (const FileTensor& tensor : file.tensors()) {
    table.add({tensor.name, tensor.label(),
               manifest != nullptr ? std::string(to_string(tensor.kind)) : "", layout(tensor, file),
               std::to_string(tensor.bytes())});
  }
  table.print();
}

}  // namespace

int show_tensors(const std::string& path, bool json, bool verify) {
  const auto file = StateFile::open(path);
  const std::vector<std::string> faults = verify ? faults_of(*file) : std::vector<std::string>();
  if (json) {
    Json shown = to_json(*file);
    if (verify) shown["faults"] = faults;
    fmt::print("{}", json_text(shown));
  } else {
    print(*file);
    for (const std::string& fault : faults) fmt::print("wrong: {}\n", visible(fault));
    if (verify && faults.empty()) fmt::print("\nall bytes are as they were written\n");
  }
  return faults.empty() ? 0 : 1;
}

}  // namespace weft
