#pragma once
/// CheckpointObjects: writes and removes checkpoints in object stores, which have no folders, no
/// locks and no rename.
///
///   FOLDER_URL/checkpoint_000640/part-00003-of-00008-OWNER.weft, ...   uploaded first
///   FOLDER_URL/checkpoint_000640/manifest.weft                         uploaded last
///
/// A checkpoint exists when its manifest exists. The manifest is uploaded only if the store has
/// none yet. The names of parts say to which save they belong, so parts of two saves never mix. The
/// functions do for URLs what the functions of checkpoint_folder.hpp do for folders.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/format/checkpoint_manifest.hpp"

namespace weft {

/// The names of the checkpoints in a folder. Those in `whole` have a manifest; those in
/// `unfinished` have only parts.
struct ObjectNames {
  std::vector<std::string> whole{};
  std::vector<std::string> unfinished{};
};
ObjectNames list_checkpoint_objects(const std::string& folder_url);

/// Uploads the parts, which are in the local folder `unfinished`, and then the manifest. Throws
/// unavailable if a checkpoint with that name exists. Throws io; the checkpoint then exists if its
/// manifest does.
void put_checkpoint(const std::string& checkpoint_url, const std::string& unfinished,
                    CheckpointManifest manifest);

/// Removes a checkpoint. Removes the manifest first, so that readers don't see the checkpoint from
/// then on.
void remove_checkpoint_objects(const std::string& checkpoint_url);

/// Throws not_found or corrupt, with the object's name, if an object doesn't exist or is too short.
void require_objects(const std::string& checkpoint_url, const std::vector<std::string>& names,
                     std::span<const std::uint64_t> bytes);

}  // namespace weft
