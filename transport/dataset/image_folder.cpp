/// image_folder() and image_classes().

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <weft/error.hpp>
#include <weft/image_files.hpp>

#include "spmd/data/fields.hpp"
#include "transport/dataset/input_file.hpp"
#include "transport/format/plain_file.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// Of folders in folders: links may go round in a circle.
constexpr int kDepthMax = 32;
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 30;

bool is_picture(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return false;
  std::string extension = name.substr(dot + 1);
  for (char& letter : extension) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return extension == "jpg" || extension == "jpeg" || extension == "png";
}

struct Listing {
  std::vector<std::string> folders;  ///< names, sorted
  std::vector<std::string> pictures;
};

Listing list(const std::string& folder) {
  require_local_path(folder);
  Listing listing;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      std::error_code unreachable;  // a link to nowhere
      if (entry.is_directory(unreachable)) {
        listing.folders.push_back(std::move(name));
      } else if (is_picture(name)) {
        listing.pictures.push_back(std::move(name));
      }
    }
  } catch (const fs::filesystem_error& error) {
    const bool absent = error.code() == std::errc::no_such_file_or_directory ||
                        error.code() == std::errc::not_a_directory;
    fail(absent ? Errc::not_found : Errc::io, "can't read the folder {}: {}", folder,
         error.code().message());
  }
  std::ranges::sort(listing.folders);
  std::ranges::sort(listing.pictures);
  return listing;
}

class ImageFolder : public Dataset {
 public:
  ImageFolder(const std::string& path, const ImageFolderOptions& options)
      : path_(path), image_(options.image) {
    fields_ = {field_of(image_), {options.label, {DType::i32, {}}}};
    check_fields(path_, fields_);
    const std::vector<std::string> classes = image_classes(path);
    for (std::size_t label = 0; label < classes.size(); ++label) {
      const std::size_t before = pictures_.size();
      add_folder(path + "/" + classes[label], static_cast<std::int32_t>(label), 0);
      if (pictures_.size() > before) continue;
      fail(Errc::invalid_argument,
           "{}: the folder of class '{}' has no pictures (.jpg, .jpeg, .png); remove it, or add "
           "some",
           path, classes[label]);
    }
  }

  std::string name() const override { return path_; }
  std::int64_t size() const override { return std::ssize(pictures_); }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  struct Entry {
    std::uint64_t name_begin = 0;  ///< in names_, up to a 0
    std::uint32_t folder = 0;
    std::int32_t label = 0;
  };

  void add_folder(const std::string& folder, std::int32_t label, int depth) {
    if (depth == kDepthMax) {
      fail(Errc::invalid_argument, "{}: lies {} folders deep; is there a link to a folder above?",
           folder, depth);
    }
    const Listing listing = list(folder);
    if (!listing.pictures.empty()) {
      folders_.push_back(folder);
      for (const std::string& name : listing.pictures) {
        pictures_.push_back(
            {names_.size(), static_cast<std::uint32_t>(folders_.size() - 1), label});
        names_ += name;
        names_ += '\0';
      }
    }
    for (const std::string& name : listing.folders) {
      add_folder(folder + "/" + name, label, depth + 1);
    }
  }

  void read_item(const Item& item, ItemMemory out) const override {
    const Entry& entry = pictures_[static_cast<std::size_t>(item.index)];
    const InputFile file(folders_[entry.folder] + "/" + &names_[entry.name_begin]);
    of_file(file.path(), [&] {
      if (file.bytes() > kFileBytesMax) {
        fail(Errc::corrupt, "has {} bytes; a picture has at most {}", file.bytes(), kFileBytesMax);
      }
      ItemRandom random(item);
      decode_image(file.head(file.bytes()), image_, random, out[0]);
    });
    std::memcpy(out[1].data(), &entry.label, sizeof entry.label);
  }

  const std::string path_;
  const ImageField image_;
  std::vector<Field> fields_;
  std::vector<std::string> folders_;
  std::string names_;
  std::vector<Entry> pictures_;
};

}  // namespace

std::vector<std::string> image_classes(const std::string& path) {
  std::vector<std::string> classes = list(path).folders;
  if (classes.empty()) {
    fail(Errc::invalid_argument, "{}: has no folders; expected one for each class", path);
  }
  return classes;
}

DatasetPtr image_folder(const std::string& path, const ImageFolderOptions& options) {
  return std::make_shared<const ImageFolder>(path, options);
}

}  // namespace weft
