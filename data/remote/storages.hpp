#pragma once
/// Finds the Storage for a path that is a URL.

#include <string>
#include <string_view>
#include <vector>

#include <weft/data/storage.hpp>

namespace weft {

/// Returns whether a path is a URL.
bool is_remote(std::string_view path);

/// Returns the storage of a URL, or null for a local path. Throws unavailable for a scheme without
/// storage. The error contains `option`, such as "run.checkpoint.path", unless it is "".
StoragePtr find_storage(std::string_view path, std::string_view option = "");

/// Throws like find_storage(), to check a path early.
void require_storage(std::string_view path, std::string_view option = "");

/// Reads the object of a URL. Throws not_found if there is no such object, and invalid_argument if
/// it has more than `bytes_max` bytes.
std::vector<std::byte> read_object(const std::string& url, std::size_t bytes_max);

/// Removes slashes from the end of a URL; returns a local path unchanged.
std::string without_last_slash(std::string path);
/// Returns the URL of the enclosing folder: "s3://bucket/a" for "s3://bucket/a/b".
std::string parent_url(const std::string& url);
/// Returns the part after the last slash: "b" for "s3://bucket/a/b".
std::string last_part(const std::string& path);

}  // namespace weft
