#pragma once
/// Checks a path that a user has given, before weft reads or writes there. Every reader and writer
/// of such paths uses these checks.

#include <string>
#include <string_view>

namespace weft {

/// The scheme that URLs have for local files ("file://x"). weft accepts a local path only without
/// it.
inline constexpr std::string_view kLocalScheme = "file";

/// Returns "s3" for "s3://bucket/x" (RFC 3986); "" for a path without a scheme.
std::string_view url_scheme(std::string_view path);

/// Throws unavailable for a URL ("s3://bucket/x"), which would otherwise become a local folder
/// "s3:". The error names `option`, such as "run.storage_path", unless it is "".
void require_local_path(std::string_view path, std::string_view option = "");

/// Returns the path in an environment variable; "" if it isn't set. Throws as require_local_path()
/// does, with the variable's name.
std::string path_variable(const char* name);

/// Returns the absolute path, whose first ~ stands for HOME, without a trailing slash, so that its
/// last part is a name; "" for "". Throws as require_local_path() does, and invalid_argument if
/// HOME isn't set; the error names `option`.
std::string absolute_path(const std::string& path, std::string_view option);

/// Opens a plain file for reading and returns its descriptor. Opening never waits, for example for
/// the writer of a fifo. Throws not_found if there is no such file; io if it can't be opened, for
/// example because links form a cycle; invalid_argument, naming the kind, for a folder, a fifo, a
/// socket or a device. Also throws as require_local_path() does.
int open_plain_file(const std::string& path);

}  // namespace weft
