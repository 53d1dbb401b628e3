#pragma once
/// Constants of a zip file's records: their signatures, and their sizes without the names and extra
/// fields that follow.

#include <cstddef>
#include <cstdint>

namespace weft {

inline constexpr std::uint32_t kZipLocalSignature = 0x04034b50;
inline constexpr std::uint32_t kZipCentralSignature = 0x02014b50;
inline constexpr std::uint32_t kZipEndSignature = 0x06054b50;
inline constexpr std::uint32_t kZip64EndSignature = 0x06064b50;
inline constexpr std::uint32_t kZip64LocatorSignature = 0x07064b50;

inline constexpr std::size_t kZipLocalBytes = 30;
inline constexpr std::size_t kZipCentralBytes = 46;
inline constexpr std::size_t kZipEndBytes = 22;
inline constexpr std::size_t kZip64EndBytes = 56;
inline constexpr std::size_t kZip64LocatorBytes = 20;

inline constexpr std::uint16_t kZipEncrypted = 1;  ///< a flag: the entry is encrypted
inline constexpr std::uint16_t kZipStored = 0;
inline constexpr std::uint16_t kZipDeflated = 8;

/// The id of the extra field for numbers that are too large for their own fields, which then have
/// the value kZip16Max or kZip32Max.
inline constexpr std::uint16_t kZip64ExtraId = 1;
inline constexpr std::uint16_t kZip16Max = 0xffff;
inline constexpr std::uint32_t kZip32Max = 0xffffffff;

}  // namespace weft
