/// Implements class_folder() and image_classes().

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <weft/data/image_files.hpp>
#include <weft/tensor/error.hpp>

#include "data/datasets/tar_sample.hpp"
#include "data/items/fields.hpp"
#include "data/remote/input_file.hpp"
#include "data/remote/object_cache.hpp"
#include "data/remote/scan_progress.hpp"
#include "data/remote/storages.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// The maximum depth of folders. This limit ends the search if links form a cycle.
constexpr int kDepthMax = 32;
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 30;

/// Returns the text in lower case; only ASCII letters change.
std::string lower(std::string text) {
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

bool has_extension(const std::string& name, const std::vector<std::string>& extensions) {
  const std::size_t dot = name.rfind('.');
  return dot != std::string::npos &&
         std::ranges::find(extensions, lower(name.substr(dot + 1))) != extensions.end();
}

struct Listing {
  std::vector<std::string> folders{};  ///< names, sorted
  std::vector<std::string> files{};
  std::vector<StoredObject> objects{};  ///< the files, if the folder is a URL
};

/// Lists the objects of a remote folder. In an object store, folders exist only as parts of the
/// names of objects.
Listing list_objects(Storage& storage, const std::string& folder,
                     const std::vector<std::string>& extensions, ScanProgress& progress) {
  std::vector<StoredObject> objects = storage.list(folder + "/");
  if (objects.empty()) fail(Errc::not_found, "there are no objects in the folder {}", folder);
  progress.advance(std::ssize(objects));
  std::ranges::sort(objects, {}, &StoredObject::url);
  Listing listing;
  for (StoredObject& object : objects) {
    const std::string rest = object.url.substr(folder.size() + 1);
    if (const std::size_t slash = rest.find('/'); slash != std::string::npos) {
      std::string name = rest.substr(0, slash);
      if (listing.folders.empty() || listing.folders.back() != name) {
        listing.folders.push_back(std::move(name));
      }
    } else if (has_extension(rest, extensions)) {
      listing.files.push_back(rest);
      listing.objects.push_back(std::move(object));
    }
  }
  std::ranges::sort(listing.folders);
  listing.folders.erase(std::unique(listing.folders.begin(), listing.folders.end()),
                        listing.folders.end());
  return listing;
}

Listing list(const std::string& folder, const std::vector<std::string>& extensions,
             ScanProgress& progress) {
  if (const StoragePtr storage = find_storage(folder)) {
    return list_objects(*storage, folder, extensions, progress);
  }
  Listing listing;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      std::error_code unreachable;  // set if a link has no target
      if (entry.is_directory(unreachable)) {
        listing.folders.push_back(std::move(name));
      } else if (has_extension(name, extensions)) {
        listing.files.push_back(std::move(name));
      }
      progress.advance(1);
    }
  } catch (const fs::filesystem_error& error) {
    const bool absent = error.code() == std::errc::no_such_file_or_directory ||
                        error.code() == std::errc::not_a_directory;
    fail(absent ? Errc::not_found : Errc::io, "can't read the folder {}: {}", folder,
         error.code().message());
  }
  std::ranges::sort(listing.folders);
  std::ranges::sort(listing.files);
  return listing;
}

std::vector<std::string> classes_of(const std::string& path, ScanProgress& progress) {
  std::vector<std::string> classes = list(without_last_slash(path), {}, progress).folders;
  if (classes.empty()) {
    fail(Errc::invalid_argument, "{}: has no folders; expected one for each class", path);
  }
  return classes;
}

class ClassFolder : public Dataset {
 public:
  ClassFolder(const std::string& path, const ClassFolderOptions& options)
      : path_(without_last_slash(path)),
        extensions_(split_extensions(options.extensions)),
        decode_(options.decode),
        fields_{options.field, {options.label, {DType::i32, {}}}} {
    if (!decode_) fail(Errc::invalid_argument, "{}: there is no function to decode files", path);
    check_fields(path_, fields_);
    ScanProgress progress(path, "files", 0);
    const std::vector<std::string> classes = classes_of(path_, progress);
    for (std::size_t label = 0; label < classes.size(); ++label) {
      const std::size_t before = files_.size();
      add_folder(path_ + "/" + classes[label], static_cast<std::int32_t>(label), 0, progress);
      if (files_.size() > before) continue;
      fail(Errc::invalid_argument,
           "{}: the folder of class '{}' has no files with one of the extensions {}; remove the "
           "folder, or add such files",
           path, classes[label], options.extensions);
    }
  }

  std::string name() const override { return path_; }
  std::int64_t size() const override { return std::ssize(files_); }
  const std::vector<Field>& fields() const override { return fields_; }
  std::string item_path(std::int64_t index) const override {
    const Entry& entry = files_[static_cast<std::size_t>(index)];
    return folders_[entry.folder] + "/" + &names_[entry.name_begin];
  }

 private:
  struct Entry {
    std::uint64_t name_begin = 0;  ///< offset in names_; the name ends with a zero byte
    std::uint32_t folder = 0;
    std::int32_t label = 0;
  };

  void add_folder(const std::string& folder, std::int32_t label, int depth,
                  ScanProgress& progress) {
    if (depth == kDepthMax) {
      fail(Errc::invalid_argument, "{}: is {} folders deep; is there a link to a folder above?",
           folder, depth);
    }
    const Listing listing = list(folder, extensions_, progress);
    objects_.insert(objects_.end(), listing.objects.begin(), listing.objects.end());
    if (!listing.files.empty()) {
      folders_.push_back(folder);
      for (const std::string& name : listing.files) {
        files_.push_back({names_.size(), static_cast<std::uint32_t>(folders_.size() - 1), label});
        names_ += name;
        names_ += '\0';
      }
    }
    for (const std::string& name : listing.folders) {
      add_folder(folder + "/" + name, label, depth + 1, progress);
    }
  }

  void read_item(const Item& item, ItemMemory out) const override {
    const Entry& entry = files_[static_cast<std::size_t>(item.index)];
    const std::string path = item_path(item.index);
    const InputFile file(
        objects_.empty() ? path : local_copy(objects_[static_cast<std::size_t>(item.index)]));
    of_file(path, [&] {
      if (file.bytes() > kFileBytesMax) {
        fail(Errc::corrupt, "has {} bytes; a file has at most {}", file.bytes(), kFileBytesMax);
      }
      ItemRandom random(item);
      decode_file(decode_, fields_[0], file.head(file.bytes()), random, out[0]);
    });
    std::memcpy(out[1].data(), &entry.label, sizeof entry.label);
  }

  const std::string path_;
  const std::vector<std::string> extensions_;
  const FileDecoder decode_;
  const std::vector<Field> fields_;
  std::vector<std::string> folders_;
  std::string names_;
  std::vector<Entry> files_;
  std::vector<StoredObject> objects_;  // files of a URL; each is copied when it is read
};

}  // namespace

std::vector<std::string> image_classes(const std::string& path) {
  ScanProgress progress(path, "files", 0);
  return classes_of(path, progress);
}

DatasetPtr class_folder(const std::string& path, const ClassFolderOptions& options) {
  return std::make_shared<const ClassFolder>(path, options);
}

}  // namespace weft
