#pragma once
/// How the parts that workers write become one checkpoint: beside each part lies a table of its
/// shards, and who joins the parts makes the manifest of the tables.
///
///   FOLDER/.tmp-000640-OWNER/part-00003-of-00008.weft, part-00003-of-00008.weft.table, ...

#include <string>

#include "data/files/file_system.hpp"
#include "transport/format/checkpoint_manifest.hpp"

namespace weft {

/// `table` has all tensors of the checkpoint, in the order that all workers have, and of their
/// shards those of the part, as if all parts were its files.
void write_part_table(FileSystem& files, const std::string& unfinished, int part, int num_parts,
                      const CheckpointManifest& table);

/// Removes what a worker has written of a part and its table.
void remove_part(FileSystem& files, const std::string& unfinished, int part, int num_parts);

/// Reads and removes the tables, and commits the checkpoint. Returns its path. Throws as
/// commit_checkpoint(), and corrupt if tables contradict each other.
std::string join_parts(FileSystem& files, const std::string& folder, const std::string& unfinished,
                       int num_parts);

}  // namespace weft
