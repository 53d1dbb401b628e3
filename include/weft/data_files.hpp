#pragma once
/// Datasets of files. The items stay there and are read as they are asked for (pread), so that a
/// file that shrinks meanwhile is an error and no SIGBUS; what is read often the system keeps in
/// its page cache. Only what is compressed is kept in memory.
///
/// All throw not_found or io with the path; corrupt or version for a file that isn't of the format.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weft/dataset.hpp>

namespace weft {

/// How an array of a file becomes a field.
struct FileField {
  std::string name = "x";
  /// Default: the file's; where weft has no such dtype, i32 for narrower integers and f32 for half
  /// floats. An integer becomes a wider one or a floating number, a floating number another.
  std::optional<DType> dtype{};
  /// The element is value * scale + offset, in f64, then rounded. Floating fields only.
  double scale = 1;
  double offset = 0;
};

/// The rows of an array in a file of NumPy: item i is array[i]. Throws invalid_argument for an
/// array without dims or of Fortran's order (np.ascontiguousarray() makes another).
DatasetPtr npy_file(const std::string& path, const FileField& field = {});

struct NpzOptions {
  /// Arrays of the file, by name. Default: all.
  std::vector<FileField> fields{};
  /// Of compressed arrays, which are held in memory. Beyond that: no_space.
  std::int64_t memory_bytes_max = std::int64_t{4} << 30;
};
/// The arrays of numpy.savez() or savez_compressed(), a field each. Compressed ones are verified by
/// their checksums; others are read by rows and aren't.
DatasetPtr npz_file(const std::string& path, const NpzOptions& options = {});

/// A file of the format that MNIST has, one item for each index of the first dim. Bytes become i32,
/// or as the field says: {.dtype = DType::f32, .scale = 1.0 / 255}. Files that are compressed must
/// be decompressed first.
DatasetPtr idx_file(const std::string& path, const FileField& field = {});

/// Columns of a CSV file that become a field.
struct CsvField {
  std::string name = "x";
  DType dtype = DType::f32;
  /// Names in the header. Default: as many columns as `item_shape` has elements, from
  /// `first_column` on.
  std::vector<std::string> columns{};
  std::int64_t first_column = 0;
  /// Default: one number; of several named columns, [n].
  Shape item_shape{};
  double scale = 1;  ///< as FileField's
  double offset = 0;
  /// What an empty cell means. Default: an error.
  std::optional<double> missing{};
};
struct CsvOptions {
  std::vector<CsvField> fields{};
  bool header = true;
  char separator = ',';
};
/// A record is an item (RFC 4180: cells may be in quotes, and then have separators, "" for a quote
/// and ends of lines); empty lines are none. Opening reads the file once for where records begin, 8
/// bytes for each. Cells are parsed as they are read: what is no number of the dtype is corrupt,
/// with line and column.
DatasetPtr csv_file(const std::string& path, const CsvOptions& options);

struct TokenOptions {
  /// Tokens of an item.
  std::int64_t length = 1024;
  int token_bytes = 2;           ///< 2 or 4, unsigned, little-endian
  std::uint64_t skip_bytes = 0;  ///< of a header
  /// The distance between the beginnings of windows. Default: `length`.
  std::int64_t stride = 0;
  /// The token that ends a document. Then no window goes from one document to the next: each
  /// document is cut anew (stride = length), its last window is filled up with this token, and what
  /// is filled up or has no next token has kIgnoredToken as target.
  std::optional<std::uint32_t> separator{};
};
/// The target that cross_entropy() leaves out.
inline constexpr std::int32_t kIgnoredToken = -100;
/// Windows of a file of tokens: "tokens", i32[length], and "targets", i32[length], of each token
/// the next one. Without a separator, what is left at the end and is shorter than a window is left
/// out. With one, opening reads the file once, and 16 bytes are kept for each document.
DatasetPtr token_file(const std::string& path, const TokenOptions& options = {});

}  // namespace weft
