#pragma once
/// Checkpoints in object stores, which have no folders, no locks and no rename.
///
///   FOLDER_URL/checkpoint_000640/part-00003-of-00008-OWNER.weft, ...   put first
///   FOLDER_URL/checkpoint_000640/manifest.weft                         put last
///
/// The manifest makes a checkpoint, and is put only where there is none. Names of parts say which
/// save they are of, so that two saves never mix. The functions are those of
/// checkpoint_folder.hpp for URLs.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/format/checkpoint_manifest.hpp"

namespace weft {

/// The names of checkpoints in a folder, each once: of those that have a manifest, and of those
/// that have parts alone.
struct ObjectNames {
  std::vector<std::string> whole{};
  std::vector<std::string> unfinished{};
};
ObjectNames list_checkpoint_objects(const std::string& folder_url);

/// Puts the parts, which are in the folder `unfinished` of this machine, and then the manifest.
/// Throws unavailable if there is a checkpoint of that name; io. After an error the checkpoint is
/// there if its manifest is.
void put_checkpoint(const std::string& checkpoint_url, const std::string& unfinished,
                    CheckpointManifest manifest);

/// The manifest goes first: readers no longer see the checkpoint as soon as this has begun.
void remove_checkpoint_objects(const std::string& checkpoint_url);

/// Throws not_found or corrupt, naming the object, if one of these isn't there, or has fewer bytes.
void require_objects(const std::string& checkpoint_url, const std::vector<std::string>& names,
                     std::span<const std::uint64_t> bytes);

}  // namespace weft
