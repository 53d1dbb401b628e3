#pragma once
/// Finds the Storage of a path that is a URL.

#include <string>
#include <string_view>
#include <vector>

#include <weft/storage.hpp>

namespace weft {

/// Whether a path is a URL.
bool is_remote(std::string_view path);

/// The storage of a URL; null for a path of this machine. Throws unavailable for a scheme that has
/// none. `option` is what the error names with the path, "run.checkpoint.path"; "" for nothing.
StoragePtr find_storage(std::string_view path, std::string_view option = "");

/// Throws what find_storage() throws.
void require_storage(std::string_view path, std::string_view option = "");

/// Reads the object of a URL. Throws not_found if there is none; invalid_argument if it has more
/// than `bytes_max`.
std::vector<std::byte> read_object(const std::string& url, std::size_t bytes_max);

/// A URL without slashes at its end; a path of this machine as it is.
std::string without_last_slash(std::string path);
/// The URL of what lies around another one: "s3://bucket/a" for "s3://bucket/a/b".
std::string parent_url(const std::string& url);
/// The part after the last slash: "b" for "s3://bucket/a/b".
std::string last_part(const std::string& path);

}  // namespace weft
