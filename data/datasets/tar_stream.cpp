/// Implements tar_stream() with libarchive.

#include <algorithm>
#include <optional>
#include <utility>

#include <archive.h>
#include <archive_entry.h>

#include <weft/tensor/error.hpp>

#include "data/datasets/tar_sample.hpp"
#include "data/remote/input_file.hpp"
#include "data/remote/object_cache.hpp"

namespace weft {
namespace {

/// An archive that is read once, from beginning to end.
class Archive {
 public:
  explicit Archive(const std::string& path) : archive_(archive_read_new()) {
    if (archive_ == nullptr) fail(Errc::no_space, "libarchive is out of memory");
    const std::string copy = local_copy(path);
    const InputFile opened(copy);  // throws if the file can't be opened
    for (const auto support : {archive_read_support_filter_gzip, archive_read_support_filter_bzip2,
                               archive_read_support_filter_xz, archive_read_support_filter_zstd,
                               archive_read_support_filter_lz4, archive_read_support_format_tar}) {
      (void)support(archive_.get());
    }
    constexpr std::size_t kBlockBytes = std::size_t{1} << 18;
    check(archive_read_open_filename(archive_.get(), copy.c_str(), kBlockBytes));
  }

  /// Returns the name of the next plain file, or null at the end. The name is valid until the next
  /// call.
  const char* next_file() {
    for (;;) {
      const int result = archive_read_next_header(archive_.get(), &entry_);
      if (result == ARCHIVE_EOF) return nullptr;
      check(result);
      if (archive_entry_filetype(entry_) != AE_IFREG || archive_entry_hardlink(entry_) != nullptr) {
        continue;
      }
      // In the locale "C", archive_entry_pathname() returns null for the UTF-8 names of the pax
      // format.
      if (const char* const name = archive_entry_pathname(entry_)) return name;
      if (const char* const name = archive_entry_pathname_utf8(entry_)) return name;
      fail(Errc::corrupt, "has a file whose name isn't valid UTF-8");
    }
  }

  /// Reads the data of the file that next_file() has found.
  void read(std::uint64_t bytes_max, std::vector<std::byte>& out) {
    const auto bytes =
        static_cast<std::uint64_t>(std::max<la_int64_t>(archive_entry_size(entry_), 0));
    if (bytes > bytes_max) {
      fail(Errc::no_space, "has {} bytes; file_bytes_max allows {}", bytes, bytes_max);
    }
    out.resize(static_cast<std::size_t>(bytes));
    for (std::size_t done = 0; done < out.size();) {
      const la_ssize_t count =
          archive_read_data(archive_.get(), out.data() + done, out.size() - done);
      if (count < 0) check(static_cast<int>(count));
      if (count <= 0) fail(Errc::corrupt, "ends after {} of {} bytes", done, out.size());
      done += static_cast<std::size_t>(count);
    }
  }

 private:
  struct Free {
    void operator()(archive* opened) const { (void)archive_read_free(opened); }
  };

  void check(int result) {
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN) return;
    const char* const text = archive_error_string(archive_.get());
    fail(Errc::corrupt, "{}", text != nullptr ? text : "libarchive can't read it");
  }

  std::unique_ptr<archive, Free> archive_;
  archive_entry* entry_ = nullptr;  // owned by libarchive
};

class TarStream : public Stream {
 public:
  TarStream(std::vector<std::string> paths, std::vector<TarField> fields,
            const TarStreamOptions& options)
      : name_(fmt::format("tar_stream({}{})", paths.empty() ? "" : paths[0],
                          paths.size() > 1 ? ", ..." : "")),
        paths_(std::move(paths)),
        sample_(name_, std::move(fields)),
        options_(options),
        files_(sample_.num_fields()) {
    if (paths_.empty()) fail(Errc::invalid_argument, "tar_stream: there are no paths");
    if (options_.file_bytes_max < 1) {
      fail(Errc::invalid_argument, "tar_stream: file_bytes_max = {}: expected 1 or more",
           options_.file_bytes_max);
    }
  }

  std::string name() const override { return name_; }
  const std::vector<Field>& fields() const override { return sample_.fields(); }

 private:
  /// A file that becomes a field, and whose data comes next in the archive.
  struct Pending {
    std::size_t path = 0;
    std::string name{};
    std::string key{};
    std::size_t field = 0;
  };

  bool next_item(ItemMemory out) override {
    if (!read_sample(true)) return false;
    ItemRandom random({.index = index(), .epoch = epoch(), .seed = options_.seed});
    for (std::size_t field = 0; field < out.size(); ++field) {
      of_file(paths_[path_], [&] {
        of_file(names_[field], [&] { sample_.decode(field, files_[field], random, out[field]); });
      });
    }
    return true;
  }
  bool skip_item() override { return read_sample(false); }
  void rewind_items() override {
    archive_.reset();
    pending_.reset();
    next_path_ = 0;
    is_begun_ = false;
  }

  /// Reads the files of a sample, or skips them if not `is_wanted`. Returns false at the end.
  bool read_sample(bool is_wanted) {
    if (!std::exchange(is_begun_, true)) find_next();
    if (!pending_) return false;
    const std::string key = pending_->key;
    path_ = pending_->path;
    names_.assign(sample_.num_fields(), {});
    do {
      of_file(paths_[path_], [&] { take_pending(is_wanted); });
      find_next();
    } while (pending_ && pending_->path == path_ && pending_->key == key);
    const auto missing = std::ranges::find(names_, "");
    if (missing != names_.end()) {
      of_file(paths_[path_], [&] {
        refuse_incomplete(key,
                          sample_.extension(static_cast<std::size_t>(missing - names_.begin())));
      });
    }
    return true;
  }

  void take_pending(bool is_wanted) {
    std::string& name = names_[pending_->field];
    if (!name.empty()) refuse_twice(pending_->key, sample_.extension(pending_->field));
    name = pending_->name;
    if (!is_wanted) return;
    of_file(name, [&] {
      archive_->read(static_cast<std::uint64_t>(options_.file_bytes_max), files_[pending_->field]);
    });
  }

  /// Moves to the next file that becomes a field.
  void find_next() {
    pending_.reset();
    while (!pending_) {
      if (!archive_) {
        if (next_path_ == paths_.size()) return;
        archive_.emplace(paths_[next_path_++]);
      }
      of_file(paths_[next_path_ - 1], [&] { find_in_archive(); });
    }
  }

  void find_in_archive() {
    while (const char* const file = archive_->next_file()) {
      const auto name = sample_name(file);
      const auto field = name ? sample_.field_of_extension(name->extension) : std::nullopt;
      if (!field) continue;
      pending_ = Pending{next_path_ - 1, file, std::string(name->key), *field};
      return;
    }
    archive_.reset();
  }

  const std::string name_;
  const std::vector<std::string> paths_;
  const TarSample sample_;
  const TarStreamOptions options_;
  bool is_begun_ = false;
  std::size_t next_path_ = 0;  // index of the next archive's path
  std::optional<Archive> archive_;
  std::optional<Pending> pending_;
  // The following members describe the sample that was read.
  std::size_t path_ = 0;
  std::vector<std::string> names_;  // names of the fields' files
  std::vector<std::vector<std::byte>> files_;
};

}  // namespace

StreamPtr tar_stream(std::vector<std::string> paths, std::vector<TarField> fields,
                     const TarStreamOptions& options) {
  return std::make_unique<TarStream>(std::move(paths), std::move(fields), options);
}

}  // namespace weft
