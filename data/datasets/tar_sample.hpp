#pragma once
/// Decides to which field a file of a tar sample belongs, and decodes the file.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/data/tar_files.hpp>

namespace weft {

/// The maximum size in bytes of a file that becomes a field.
inline constexpr std::uint64_t kSampleFileBytesMax = std::uint64_t{1} << 30;

/// The parts of a file's name. For example, "a/0001.seg.PNG" is the file "seg.png" of sample
/// "a/0001".
struct SampleName {
  std::string_view key{};
  std::string extension{};
};
/// Splits a path into its parts. Returns nothing if the name has no extension or begins with a dot.
std::optional<SampleName> sample_name(std::string_view path);

/// Calls a user's decoder for one field.
void decode_file(const FileDecoder& decode, const Field& field, std::span<const std::byte> file,
                 ItemRandom& random, std::span<std::byte> out);

/// Splits "jpg;png" into words. Throws invalid_argument for an extension that no file can have.
std::vector<std::string> split_extensions(const std::string& extensions);

class TarSample {
 public:
  /// Throws invalid_argument if fields contradict each other.
  TarSample(std::string_view dataset, std::vector<TarField> fields);

  const std::vector<Field>& fields() const { return fields_; }
  std::size_t num_fields() const { return fields_.size(); }
  /// Returns the number of the field to which files with this extension belong, if there is one.
  std::optional<std::size_t> field_of_extension(std::string_view extension) const;
  /// Returns the extensions of a field as the user gave them, such as "jpg;jpeg;png".
  const std::string& extension(std::size_t field) const;
  /// Decodes the file. Throws corrupt if the file can't become the field.
  void decode(std::size_t field, std::span<const std::byte> file, ItemRandom& random,
              std::span<std::byte> out) const;

 private:
  std::vector<TarField> tar_fields_;
  std::vector<Field> fields_;
  std::vector<std::vector<std::string>> extensions_;  // extensions of each field
};

/// Throws corrupt because the sample `key` has files for some fields, but no file with this
/// extension.
[[noreturn]] void refuse_incomplete(std::string_view key, const std::string& extension);
/// Throws corrupt because two files of the sample belong to the same field.
[[noreturn]] void refuse_twice(std::string_view key, const std::string& extension);

}  // namespace weft
