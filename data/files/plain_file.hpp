#pragma once
/// Checks a path that a user has given, before weft reads or writes there. All readers and writers
/// of such paths use these checks.

#include <string>
#include <string_view>

namespace weft {

/// The scheme of URLs of local files ("file://x"). weft accepts local paths only without a scheme.
inline constexpr std::string_view kLocalScheme = "file";

/// Returns the scheme of a URL (RFC 3986), such as "s3" for "s3://bucket/x", or "" for a path
/// without a scheme.
std::string_view url_scheme(std::string_view path);

/// Throws unavailable for a URL such as "s3://bucket/x", which would otherwise become a local
/// folder "s3:". The error contains `option`, such as "run.storage_path", unless it is "".
void require_local_path(std::string_view path, std::string_view option = "");

/// Returns the path in an environment variable, or "" if the variable isn't set. Throws like
/// require_local_path(), with the variable's name.
std::string path_variable(const char* name);

/// Returns the absolute path, or "" for "". Replaces a ~ at the beginning by HOME, and removes
/// trailing slashes, so that the last part is a name. Throws like require_local_path(), and
/// invalid_argument if HOME is needed but isn't set; the error contains `option`.
std::string absolute_path(const std::string& path, std::string_view option);

/// Opens a plain file for reading and returns its descriptor. Never waits, for example for the
/// writer of a fifo. Throws not_found if there is no such file, io if it can't be opened, for
/// example because links form a cycle, and invalid_argument, with the kind, if it is a folder, a
/// fifo, a socket or a device. Also throws like require_local_path().
int open_plain_file(const std::string& path);

}  // namespace weft
