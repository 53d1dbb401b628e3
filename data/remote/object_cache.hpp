#pragma once
/// Copies objects to this machine, so that they can be read as files. Each object is copied once,
/// by the first process that needs it, and all processes of the user share the copies.
///
///   CACHE/copies/HASH/files/NAME      the copy of FOLDER_URL/NAME
///   CACHE/copies/HASH/versions/NAME   the version of the object; locked while it changes
///   CACHE/staged/HASH/                files that will be put under FOLDER_URL
///
/// HASH is the hash of FOLDER_URL, and CACHE is $WEFT_CACHE, else $XDG_CACHE_HOME/weft, else
/// ~/.cache/weft. Only keep_one_copy() removes copies; a user may remove them at any time.

#include <string>
#include <vector>

#include <weft/data/storage.hpp>

namespace weft {

/// Returns a local path unchanged. For a URL it returns the path of a copy of the object's present
/// version, and makes the copy if needed. Throws not_found if there is no such object, and no_space
/// or io if the copy can't be made.
std::string local_copy(const std::string& path);
/// Returns the path of a copy of an object whose version is known.
std::string local_copy(const StoredObject& object);
/// Returns the path of a local copy for each path. Several objects are copied at the same time.
std::vector<std::string> local_copies(const std::vector<std::string>& paths);
/// Returns a local folder that has the files `names` of `folder`. If `folder` is a URL, this is the
/// folder of copies.
std::string local_folder(const std::string& folder, const std::vector<std::string>& names);

/// Records that the folder `folder_url` of `parent_url` has copies. If another folder of
/// `parent_url` was recorded before, removes the copies of that folder, unless a process has locked
/// (flock) the file `locked` among them.
void keep_one_copy(const std::string& parent_url, const std::string& folder_url,
                   const std::string& locked);

/// Returns a local folder, which exists, for files that will be put under `folder_url`. Throws
/// unavailable if the URL's scheme has no storage.
std::string staging_folder(const std::string& folder_url);

/// Stores a local file as an object, like Storage::put().
bool put_file(const std::string& url, int descriptor, PutMode mode);

}  // namespace weft
