#pragma once
/// PartTable: joins the parts of a checkpoint, which several workers write. Beside each part is a
/// table of its shards. The process that joins the parts makes the manifest from the tables.
///
///   FOLDER/.tmp-000640-OWNER/part-00003-of-00008.weft, part-00003-of-00008.weft.table, ...

#include <string>

#include "data/files/file_system.hpp"
#include "transport/format/checkpoint_manifest.hpp"

namespace weft {

/// Returns the name of the table of one part.
std::string part_table_name(int part, int num_parts);

/// Writes the table of one part. `table` has all tensors of the checkpoint, in the same order on
/// all workers. It lists all parts as files, but only the shards of this part.
void write_part_table(FileSystem& files, const std::string& unfinished, int part, int num_parts,
                      const CheckpointManifest& table);

/// Removes the files of a part and its table that a worker has written.
void remove_part(FileSystem& files, const std::string& unfinished, int part, int num_parts);

/// Reads and removes the tables, and commits the checkpoint. Returns the checkpoint's path. Throws
/// the errors of commit_checkpoint(), and corrupt if tables contradict each other.
std::string join_parts(FileSystem& files, const std::string& folder, const std::string& unfinished,
                       int num_parts);

}  // namespace weft
