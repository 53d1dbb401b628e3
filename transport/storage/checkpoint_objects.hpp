#pragma once
/// Checkpoints in object stores, which have no folders, no locks and no rename.
///
///   FOLDER_URL/checkpoint_000640/part-00003-of-00008-OWNER.weft, ...   uploaded first
///   FOLDER_URL/checkpoint_000640/manifest.weft                         uploaded last
///
/// A checkpoint exists when its manifest does. The manifest is uploaded only if there is none yet.
/// The names of parts say to which save they belong, so two saves never mix. The functions
/// correspond to those of checkpoint_folder.hpp, for URLs.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/format/checkpoint_manifest.hpp"

namespace weft {

/// The names of checkpoints in a folder, each once: those that have a manifest, and those that only
/// have parts.
struct ObjectNames {
  std::vector<std::string> whole{};
  std::vector<std::string> unfinished{};
};
ObjectNames list_checkpoint_objects(const std::string& folder_url);

/// Uploads the parts, which are in the folder `unfinished` of this machine, and then the manifest.
/// Throws unavailable if there is a checkpoint of that name. Throws io. After an error the
/// checkpoint exists if its manifest does.
void put_checkpoint(const std::string& checkpoint_url, const std::string& unfinished,
                    CheckpointManifest manifest);

/// Removes the manifest first, so readers no longer see the checkpoint when this has begun.
void remove_checkpoint_objects(const std::string& checkpoint_url);

/// Throws not_found or corrupt, naming the object, if one of these doesn't exist or is too short.
void require_objects(const std::string& checkpoint_url, const std::vector<std::string>& names,
                     std::span<const std::uint64_t> bytes);

}  // namespace weft
