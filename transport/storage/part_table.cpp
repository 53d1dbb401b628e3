#include "transport/storage/part_table.hpp"

#include <filesystem>
#include <system_error>
#include <vector>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft {

std::string part_table_name(int part, int num_parts) {
  return part_name(part, num_parts) + ".table";
}

namespace {

std::string table_path(const std::string& unfinished, int part, int num_parts) {
  return unfinished + "/" + part_table_name(part, num_parts);
}

/// Appends the shards in the table of another part to the manifest.
void add_shards(CheckpointManifest& manifest, CheckpointManifest table, const std::string& path) {
  bool is_alike = table.step == manifest.step && table.tensors.size() == manifest.tensors.size();
  for (std::size_t t = 0; is_alike && t < table.tensors.size(); ++t) {
    StoredTensor& tensor = manifest.tensors[t];
    StoredTensor& more = table.tensors[t];
    is_alike = more.name == tensor.name && more.type == tensor.type;
    tensor.shards.insert(tensor.shards.end(), std::make_move_iterator(more.shards.begin()),
                         std::make_move_iterator(more.shards.end()));
  }
  if (!is_alike) fail(Errc::corrupt, "{}: it has other tensors than the first part", path);
}

}  // namespace

void write_part_table(FileSystem& files, const std::string& unfinished, int part, int num_parts,
                      const CheckpointManifest& table) {
  write_new_file(files, table_path(unfinished, part, num_parts),
                 encode_manifest(table, kPartTableFormat));
}

void remove_part(FileSystem& files, const std::string& unfinished, int part, int num_parts) {
  const std::string path = unfinished + "/" + part_name(part, num_parts);
  for (const std::string& file : {path, table_path(unfinished, part, num_parts)}) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) files.remove_file(file);
  }
}

std::string join_parts(FileSystem& files, const std::string& folder, const std::string& unfinished,
                       int num_parts) {
  CheckpointManifest manifest;
  for (int part = 0; part < num_parts; ++part) {
    const std::string path = table_path(unfinished, part, num_parts);
    CheckpointManifest table =
        decode_manifest(read_file_bytes(path, kManifestBytesMax), kPartTableFormat);
    if (part == 0) {
      manifest = std::move(table);
    } else {
      add_shards(manifest, std::move(table), path);
    }
    files.remove_file(path);
  }
  return commit_checkpoint(files, folder, unfinished, manifest);
}

}  // namespace weft
