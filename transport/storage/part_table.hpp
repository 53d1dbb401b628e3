#pragma once
/// Joins the parts that workers write to one checkpoint. Beside each part is a table of its shards,
/// and the process that joins the parts makes the manifest from the tables.
///
///   FOLDER/.tmp-000640-OWNER/part-00003-of-00008.weft, part-00003-of-00008.weft.table, ...

#include <string>

#include "data/files/file_system.hpp"
#include "transport/format/checkpoint_manifest.hpp"

namespace weft {

/// `table` has all tensors of the checkpoint, in the same order on all workers. It has only the
/// shards of this part, but lists all parts as its files.
void write_part_table(FileSystem& files, const std::string& unfinished, int part, int num_parts,
                      const CheckpointManifest& table);

/// Removes the files that a worker has written for a part and its table.
void remove_part(FileSystem& files, const std::string& unfinished, int part, int num_parts);

/// Reads and removes the tables, and commits the checkpoint. Returns its path. Throws the errors of
/// commit_checkpoint(), and corrupt if tables contradict each other.
std::string join_parts(FileSystem& files, const std::string& folder, const std::string& unfinished,
                       int num_parts);

}  // namespace weft
