/// Implements tar_files() and expand_braces().

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/datasets/tar_sample.hpp"
#include "data/files/part_files.hpp"
#include "data/formats/tar.hpp"
#include "data/remote/input_file.hpp"
#include "data/remote/object_cache.hpp"
#include "data/remote/scan_progress.hpp"

namespace weft {
namespace {

/// The position of a file's data in its archive.
struct FileRange {
  std::uint64_t begin = 0;  ///< 0: no file; data is never at 0, because a header precedes it
  std::uint64_t bytes = 0;
};

void refuse_compressed(const InputFile& file) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kMagics{
      {{"\x1f\x8b", "gzip"},
       {"BZh", "bzip2"},
       {"\xfd"
        "7zXZ",
        "xz"},
       {"\x28\xb5\x2f\xfd", "zstd"},
       {"\x04\x22\x4d\x18", "lz4"}}};
  const std::vector<std::byte> head = file.head(8);
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  for (const auto& [magic, name] : kMagics) {
    if (!text.starts_with(magic)) continue;
    fail(Errc::invalid_argument,
         "is compressed by {}, so its items can't be read in any order; decompress it, or use "
         "tar_stream()",
         name);
  }
}

class TarFiles : public Dataset {
 public:
  TarFiles(const std::vector<std::string>& paths, std::vector<TarField> fields)
      : name_(name_of(paths)), sample_(name_, std::move(fields)), files_(local_copies(paths)) {
    files_.open();
    for (std::uint32_t i = 0; i < paths.size(); ++i) {
      file_bytes_.push_back(InputFile(files_.path(i)).bytes());
    }
    ScanProgress progress(name_, "bytes",
                          std::accumulate(file_bytes_.begin(), file_bytes_.end(), std::int64_t{0}));
    for (std::uint32_t i = 0; i < paths.size(); ++i) {
      first_samples_.push_back(size());
      of_file(paths[i], [&] { add_samples(InputFile(files_.path(i)), progress); });
    }
    if (size() == 0) {
      fail(Errc::invalid_argument, "{}: has no samples with files of extension {}", name_,
           sample_.extension(0));
    }
  }

  std::string name() const override { return name_; }
  std::int64_t size() const override {
    return static_cast<std::int64_t>(places_.size() / sample_.num_fields());
  }
  const std::vector<Field>& fields() const override { return sample_.fields(); }
  std::string item_path(std::int64_t index) const override {
    const std::uint32_t file = file_of(index);
    return fmt::format("{}: {}", files_.path(file), file_name(file, places_of(index)[0]));
  }

 private:
  std::uint32_t file_of(std::int64_t index) const {
    const auto after = std::ranges::upper_bound(first_samples_, index);
    return static_cast<std::uint32_t>(after - first_samples_.begin()) - 1;
  }
  /// Returns the places of the files for the item's fields.
  const FileRange* places_of(std::int64_t index) const {
    return &places_[static_cast<std::size_t>(index) * sample_.num_fields()];
  }
  static std::string name_of(const std::vector<std::string>& paths) {
    if (paths.empty()) fail(Errc::invalid_argument, "tar_files: there are no paths");
    if (paths.size() == 1) return paths[0];
    return fmt::format("{} and {} more", paths[0], paths.size() - 1);
  }
  void add_samples(const InputFile& file, ScanProgress& progress) {
    refuse_compressed(file);
    std::uint64_t scanned = 0;
    const auto scanned_to = [&](std::uint64_t at) {
      progress.advance(static_cast<std::int64_t>(at - std::exchange(scanned, at)));
    };
    const std::size_t begin = places_.size();
    std::unordered_map<std::string, std::size_t> first_places;  // by sample key
    const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
      file.read(offset, out);
    };
    scan_tar(file.bytes(), read, [&](const TarEntry& entry) {
      scanned_to(entry.data_begin + entry.bytes);
      const auto name = sample_name(entry.name);
      if (!name) return;
      const auto field = sample_.field_of_extension(name->extension);
      if (!field) return;
      const auto [found, is_new] = first_places.try_emplace(std::string(name->key), places_.size());
      if (is_new) places_.resize(places_.size() + sample_.num_fields());
      FileRange& place = places_[found->second + *field];
      if (place.begin != 0) refuse_twice(name->key, sample_.extension(*field));
      place = {entry.data_begin, entry.bytes};
    });
    scanned_to(file.bytes());
    for (std::size_t i = begin; i < places_.size(); ++i) {
      if (places_[i].begin != 0) continue;
      const std::size_t field = i % sample_.num_fields();
      const auto key = std::ranges::find(first_places, i - field,
                                         &std::pair<const std::string, std::size_t>::second);
      refuse_incomplete(key->first, sample_.extension(field));
    }
  }

  void read_item(const Item& item, ItemMemory out) const override {
    const std::uint32_t file = file_of(item.index);
    ItemRandom random(item);
    std::vector<std::byte> bytes;
    for (std::size_t field = 0; field < out.size(); ++field) {
      const FileRange& place = places_of(item.index)[field];
      const auto read = [&] {
        if (place.bytes > kSampleFileBytesMax) {
          fail(Errc::corrupt, "has {} bytes; at most {} are possible", place.bytes,
               kSampleFileBytesMax);
        }
        bytes.resize(static_cast<std::size_t>(place.bytes));
        files_.read(file, place.begin, bytes);
        sample_.decode(field, bytes, random, out[field]);
      };
      with_place(read,
                 [&] { return fmt::format("{}: {}", files_.path(file), file_name(file, place)); });
    }
  }

  /// Returns the file's name. Reads the headers again, because names aren't kept in memory.
  std::string file_name(std::uint32_t file, const FileRange& place) const {
    std::string name = fmt::format("the file at byte {}", place.begin);
    const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
      files_.read(file, offset, out);
    };
    try {
      scan_tar(file_bytes_[file], read, [&](const TarEntry& entry) {
        if (entry.data_begin == place.begin) name = entry.name;
      });
    } catch (const Error&) {  // the caller reports a more important error
    }
    return name;
  }

  const std::string name_;
  const TarSample sample_;
  const PartFiles files_;
  std::vector<std::uint64_t> file_bytes_;
  std::vector<std::int64_t> first_samples_;  // index of the first sample of each archive
  std::vector<FileRange> places_;            // positions of the files of each sample's fields
};

/// Returns the words for which a pair of braces such as {a,b} or {0000..0146} stands. `inner` is
/// the text between the braces.
std::vector<std::string> alternatives(std::string_view inner, const std::string& pattern) {
  const auto refuse = [&] {
    fail(Errc::invalid_argument, "expand_braces: '{}' in '{}': expected FIRST..LAST or A,B,...",
         inner, pattern);
  };
  std::vector<std::string> words;
  const std::size_t dots = inner.find("..");
  if (dots == std::string_view::npos) {
    if (inner.find(',') == std::string_view::npos) refuse();
    for (std::size_t begin = 0; begin <= inner.size();) {
      const std::size_t end = std::min(inner.find(',', begin), inner.size());
      words.emplace_back(inner.substr(begin, end - begin));
      begin = end + 1;
    }
    return words;
  }
  const std::string_view bounds[] = {inner.substr(0, dots), inner.substr(dots + 2)};
  std::uint32_t numbers[2] = {};
  for (int i = 0; i < 2; ++i) {
    const char* const end = bounds[i].data() + bounds[i].size();
    const auto [parsed, error] = std::from_chars(bounds[i].data(), end, numbers[i]);
    if (error != std::errc() || parsed != end) refuse();
  }
  constexpr std::uint32_t kCountMax = 1 << 20;
  if (numbers[1] < numbers[0] || numbers[1] - numbers[0] >= kCountMax) refuse();
  const bool is_padded = bounds[0][0] == '0' || bounds[1][0] == '0';
  const std::size_t width = is_padded ? std::max(bounds[0].size(), bounds[1].size()) : 0;
  for (std::uint64_t number = numbers[0]; number <= numbers[1]; ++number) {
    words.push_back(fmt::format("{:0{}}", number, width));
  }
  return words;
}

}  // namespace

DatasetPtr tar_files(const std::vector<std::string>& paths, std::vector<TarField> fields) {
  return std::make_shared<const TarFiles>(paths, std::move(fields));
}

std::vector<std::string> expand_braces(const std::string& pattern) {
  constexpr std::size_t kPathsMax = 1 << 20;
  std::vector<std::string> paths{""};
  for (std::size_t at = 0; at < pattern.size();) {
    const std::size_t open = std::min(pattern.find('{', at), pattern.size());
    const std::string plain = pattern.substr(at, open - at);
    const std::size_t close = open < pattern.size() ? pattern.find('}', open) : open;
    if (plain.find('}') != std::string::npos || close == std::string::npos) {
      fail(Errc::invalid_argument, "expand_braces: '{}': has an unmatched brace", pattern);
    }
    std::vector<std::string> words{""};
    if (close > open) {
      words = alternatives(std::string_view(pattern).substr(open + 1, close - open - 1), pattern);
    }
    if (words.size() > kPathsMax / paths.size()) {
      fail(Errc::invalid_argument, "expand_braces: '{}': more than {} paths", pattern, kPathsMax);
    }
    std::vector<std::string> longer;
    for (const std::string& path : paths) {
      for (const std::string& word : words) longer.push_back(path + plain + word);
    }
    paths = std::move(longer);
    at = close + 1;
  }
  return paths;
}

}  // namespace weft
