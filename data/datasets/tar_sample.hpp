#pragma once
/// Samples of tar files: which file becomes which field, and how.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/tar_files.hpp>

namespace weft {

/// The maximum of a file that becomes a field.
inline constexpr std::uint64_t kSampleFileBytesMax = std::uint64_t{1} << 30;

/// "a/0001.seg.PNG" is the file "seg.png" of sample "a/0001".
struct SampleName {
  std::string_view key{};
  std::string extension{};
};
/// None for a name without extension, and for one that begins with a dot.
std::optional<SampleName> sample_name(std::string_view path);

/// Calls a decoder of a user's for the one field.
void decode_file(const FileDecoder& decode, const Field& field, std::span<const std::byte> file,
                 ItemRandom& random, std::span<std::byte> out);

/// "jpg;png" as words. Throws invalid_argument for one that no file has.
std::vector<std::string> split_extensions(const std::string& extensions);

class TarSample {
 public:
  /// Throws invalid_argument for fields that contradict each other.
  TarSample(std::string_view dataset, std::vector<TarField> fields);

  const std::vector<Field>& fields() const { return fields_; }
  std::size_t num_fields() const { return fields_.size(); }
  /// The number of the field that files of the extension become.
  std::optional<std::size_t> field_of_extension(std::string_view extension) const;
  /// "jpg;jpeg;png"
  const std::string& extension(std::size_t field) const;
  /// Throws corrupt for a file that isn't of the field's form.
  void decode(std::size_t field, std::span<const std::byte> file, ItemRandom& random,
              std::span<std::byte> out) const;

 private:
  std::vector<TarField> tar_fields_;
  std::vector<Field> fields_;
  std::vector<std::vector<std::string>> extensions_;  // of each field
};

/// Throws corrupt: the sample has the first field's file, say, and not the second's.
[[noreturn]] void refuse_incomplete(std::string_view key, const std::string& extension);
/// Throws corrupt: two files of the sample become one field.
[[noreturn]] void refuse_twice(std::string_view key, const std::string& extension);

}  // namespace weft
