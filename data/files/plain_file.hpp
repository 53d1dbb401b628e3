#pragma once
/// What a path from outside has to be before weft reads or writes there. Every reader and writer of
/// such paths asks here.

#include <string>
#include <string_view>

namespace weft {

/// The scheme of paths of this machine, which are given without it.
inline constexpr std::string_view kLocalScheme = "file";

/// "s3" of "s3://bucket/x" (RFC 3986); "" of a path that begins with no scheme.
std::string_view url_scheme(std::string_view path);

/// Throws unavailable for a URL ("s3://bucket/x"), which would become a folder "s3:" of this
/// machine. `option` is what the error names with it, "run.storage_path"; "" for nothing.
void require_local_path(std::string_view path, std::string_view option = "");

/// The path that an environment variable holds; "" if it isn't set. Throws what
/// require_local_path() throws, with the variable's name.
std::string path_variable(const char* name);

/// A descriptor for reading a plain file; opening never waits, as for the writer of a fifo. Throws
/// not_found if there is none; io if it can't be opened, as for links in a circle; invalid_argument
/// for a folder, a fifo, a socket or a device, which it names; what require_local_path() throws.
int open_plain_file(const std::string& path);

}  // namespace weft
