#pragma once
/// Copies of objects on this machine, in which readers of files read them. Each object is copied
/// once, by whichever process needs it first; processes of this user share the copies.
///
///   CACHE/copies/HASH/files/NAME      the copy of FOLDER_URL/NAME
///   CACHE/copies/HASH/versions/NAME   which object it is a copy of; locked while that changes
///   CACHE/staged/HASH/                what is written before it is put under FOLDER_URL
///
/// HASH is of FOLDER_URL, and CACHE is $WEFT_CACHE, else $XDG_CACHE_HOME/weft, else ~/.cache/weft.
/// Nobody but keep_one_copy() removes copies; a user may at any time.

#include <string>
#include <vector>

#include <weft/storage.hpp>

namespace weft {

/// Returns a local path as it is. For a URL it returns the path of a copy, which is made unless
/// there is one of the object's present version. Throws not_found if there is no such object;
/// no_space, io.
std::string local_copy(const std::string& path);
/// The copy of an object whose version is known.
std::string local_copy(const StoredObject& object);
/// Each path's. Several are copied at a time.
std::vector<std::string> local_copies(const std::vector<std::string>& paths);
/// The folder in which FOLDER/NAME can be read for each name: of a URL, the folder of the copies.
std::string local_folder(const std::string& folder, const std::vector<std::string>& names);

/// Notes that `folder_url` has copies, and removes those of the folder in `parent_url` that was
/// noted before, unless somebody has locked (flock) its file `locked`.
void keep_one_copy(const std::string& parent_url, const std::string& folder_url,
                   const std::string& locked);

/// The folder, which exists, in which files are written before they are put under `folder_url`.
/// Throws unavailable if the URL's scheme has no storage.
std::string staging_folder(const std::string& folder_url);

/// Stores a file of this machine. As Storage::put().
bool put_file(const std::string& url, int descriptor, PutMode mode);

}  // namespace weft
