#pragma once
/// Several copies of weft in one process: a plug-in's and its host's.

namespace weft {

/// Copies that are isolated, or that are one by symbol interposition and of one version, are good.
/// Throws version where this copy's symbols are another's of another version, naming both files.
void require_own_weft();

}  // namespace weft
