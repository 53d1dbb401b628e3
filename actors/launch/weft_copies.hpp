#pragma once
/// Checks whether one process has several copies of weft, for example those of a plug-in and its
/// host.

namespace weft {

/// Throws version if this copy's symbols resolve to a copy of another version; the message names
/// both files. Allows copies that are isolated from each other, and copies of the same version that
/// symbol interposition merges into one.
void require_own_weft();

}  // namespace weft
