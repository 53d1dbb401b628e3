#include "tools/weft/inspect/show_tensors.hpp"

#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "data/remote/storages.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/why/words.hpp"
#include "transport/format/saved_notes.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"
#include "transport/storage/retention.hpp"
#include "transport/storage/state_file.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

/// Returns the layout of a tensor, such as "[{"data"}, {}]"; "" if it isn't known.
std::string layout(const FileTensor& tensor, const StateFile& file) {
  if (!tensor.sharding || !file.mesh()) return "";
  return tensor.sharding->to_string(*file.mesh(), tensor.shape.size());
}

std::int64_t total_bytes(const StateFile& file) {
  std::int64_t bytes = 0;
  for (const FileTensor& tensor : file.tensors()) bytes += tensor.bytes();
  return bytes;
}

/// Returns the faults that verify_checkpoint() finds; none for files of other programs, which can't
/// be verified.
std::vector<std::string> faults_of(const StateFile& file) {
  const CheckpointManifest* manifest = file.checkpoint();
  if (manifest == nullptr) {
    fail(Errc::invalid_argument,
         "--verify: {} is another program's file, which has no checksums; its header is valid",
         file.path());
  }
  return verify_checkpoint(file.path(), *manifest);
}

std::string text_of(const Json& json) {
  return visible(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// Returns the position in its data from which a loader continues.
Json to_json(const StoredLoader& loader) {
  return {
      {"dataset", loader.dataset}, {"items", loader.num_items}, {"batch_size", loader.batch_size},
      {"seed", loader.seed},       {"site", loader.site},       {"made_at_step", loader.origin},
      {"passes", loader.passes},   {"batches", loader.taken},   {"is_over", loader.is_over}};
}

void print(const std::vector<StoredLoader>& loaders) {
  Table table({{"loader of"},
               columns::kAt,
               {"made at step", Align::right},
               {"pass", Align::right},
               {"batches", Align::right},
               {""}});
  for (const StoredLoader& loader : loaders) {
    table.add({loader.dataset, loader.site, std::to_string(loader.origin),
               std::to_string(loader.passes), std::to_string(loader.taken),
               loader.is_over ? "the pass is over" : ""});
  }
  table.print();
  fmt::print("\n");
}

Json to_json(const StateFile& file) {
  Json json{{"path", file.path()}, {"bytes", total_bytes(file)}, {"tensors", Json::array()}};
  if (const CheckpointManifest* manifest = file.checkpoint()) {
    json["step"] = manifest->step;
    json["seed"] = manifest->seed;
    json["mesh"] = {{"shape", manifest->mesh_shape}, {"axes", manifest->axis_names}};
    json["files"] = manifest->files;
    const SavedNotes notes = notes_of(*manifest);
    json["metrics"] = notes.metrics;
    json["user"] = notes.user;
    json["loaders"] = Json::array();
    for (const StoredLoader& loader : manifest->loaders) json["loaders"].push_back(to_json(loader));
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
             bytes_text(total_bytes(file)));
  if (manifest != nullptr) {
    fmt::print("step {}  seed {}  mesh {}  {} part{}\n", manifest->step, manifest->seed,
               file.mesh() ? visible(file.mesh()->to_string()) : "none", manifest->files.size(),
               manifest->files.size() == 1 ? "" : "s");
    const SavedNotes notes = notes_of(*manifest);
    if (!notes.metrics.is_null()) fmt::print("metrics {}\n", text_of(notes.metrics));
    if (!notes.user.is_null()) fmt::print("user {}\n", text_of(notes.user));
  }
  fmt::print("\n");
  if (manifest != nullptr && !manifest->loaders.empty()) print(manifest->loaders);
  Table table(
      {columns::kTensor, columns::kKind, columns::kType, columns::kSharding, columns::kSize});
  for (const FileTensor& tensor : file.tensors()) {
    table.add({tensor.name, manifest != nullptr ? std::string(to_string(tensor.kind)) : "",
               tensor.label(), layout(tensor, file), bytes_text(tensor.bytes())});
  }
  table.print();
}

/// A complete checkpoint in a folder, with the notes that were saved with it.
struct Listed {
  CheckpointEntry entry{};
  SavedNotes notes{};
  std::string fault{};  ///< why the checkpoint can't be read; "" if it can
};

std::vector<Listed> checkpoints_in(const std::string& folder) {
  std::vector<Listed> all;
  std::error_code ignored;
  if (!is_remote(folder) && !std::filesystem::is_directory(folder, ignored)) return all;
  for (const CheckpointEntry& entry : list_checkpoints(folder)) {
    Listed& listed = all.emplace_back(Listed{.entry = entry, .notes = {}});
    try {
      listed.notes = notes_of(read_manifest(entry.path));
    } catch (const Error& error) {
      listed.fault = error.what();
    }
  }
  return all;
}

/// Shows the checkpoints of a folder. Marks the best checkpoint by the metric that the job of the
/// newest checkpoint used.
int show_checkpoints(const std::string& folder, const std::vector<Listed>& all, bool json) {
  const SavedNotes& last = all.back().notes;
  const auto best =
      last.best_by.empty() ? std::nullopt : find_best(folder, last.best_by, last.is_max_best);
  Json shown{{"path", folder}, {"best_by", last.best_by}, {"checkpoints", Json::array()}};
  Table table({columns::kStep, {"checkpoint"}, {"metrics"}, {"user"}, {""}});
  for (const Listed& listed : all) {
    const bool is_best = best && best->path == listed.entry.path;
    shown["checkpoints"].push_back({{"step", listed.entry.step},
                                    {"path", listed.entry.path},
                                    {"metrics", listed.notes.metrics},
                                    {"user", listed.notes.user},
                                    {"best", is_best},
                                    {"fault", listed.fault}});
    table.add({std::to_string(listed.entry.step), listed.entry.path, text_of(listed.notes.metrics),
               text_of(listed.notes.user),
               !listed.fault.empty() ? "can't be read: " + visible(listed.fault)
               : is_best             ? fmt::format("best by {}", last.best_by)
                                     : ""});
  }
  if (json) {
    fmt::print("{}", json_text(shown));
  } else {
    table.print();
  }
  return 0;
}

}  // namespace

int show_tensors(const std::string& given, bool json, bool verify) {
  const std::string path = without_last_slash(given);
  if (const auto within = checkpoints_in(path); !within.empty() && !verify) {
    return show_checkpoints(path, within, json);
  }
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
