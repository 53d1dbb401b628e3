#pragma once
/// Checks for several copies of weft in one process: a plug-in's and its host's.

namespace weft {

/// Permits isolated copies, and copies of one version that symbol interposition makes one. Throws
/// version if this copy's symbols resolve to a copy of another version; the message names both
/// files.
void require_own_weft();

}  // namespace weft
