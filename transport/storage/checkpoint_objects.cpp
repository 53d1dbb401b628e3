#include "transport/storage/checkpoint_objects.hpp"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>

#include <weft/tensor/error.hpp>

#include "data/files/plain_file.hpp"
#include "data/files/work_crew.hpp"
#include "data/remote/object_cache.hpp"
#include "data/remote/storages.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft {
namespace {

/// The number of files that are uploaded at the same time. It is small, because several threads
/// upload each file.
constexpr int kFilesAtATime = 2;

std::string manifest_url(const std::string& checkpoint) {
  return checkpoint + "/" + std::string(kManifestName);
}

/// Returns the name of a part in the store: with a suffix that distinguishes this save from others.
/// The suffix is taken from the name of the unfinished folder, such as ".tmp-000640-JOB-1-7".
std::string name_in_store(const std::string& part, const std::string& unfinished) {
  constexpr std::string_view kMark = ".tmp-";
  constexpr std::string_view kExtension = ".weft";
  std::string save = last_part(unfinished);
  if (save.starts_with(kMark)) save.erase(0, kMark.size());
  const bool is_part = part.ends_with(kExtension);
  const std::string stem = is_part ? part.substr(0, part.size() - kExtension.size()) : part;
  return fmt::format("{}-{}{}", stem, save, kExtension);
}

void put_part(const std::string& url, const std::string& path) {
  const struct Open {
    int descriptor;
    ~Open() { ::close(descriptor); }
  } file{open_plain_file(path)};
  (void)put_file(url, file.descriptor, PutMode::replace);
}

}  // namespace

ObjectNames list_checkpoint_objects(const std::string& folder) {
  const std::string parent = folder + "/";
  std::map<std::string, bool> has_manifest;
  for (const StoredObject& object :
       find_storage(folder)->list(parent + std::string(kCheckpointPrefix))) {
    const std::string rest = object.url.substr(parent.size());
    const std::size_t slash = rest.find('/');
    if (slash == std::string::npos) continue;
    has_manifest[rest.substr(0, slash)] |= rest.substr(slash + 1) == kManifestName;
  }
  ObjectNames names;
  for (const auto& [name, is_whole] : has_manifest) {
    (is_whole ? names.whole : names.unfinished).push_back(name);
  }
  return names;
}

void put_checkpoint(const std::string& checkpoint, const std::string& unfinished,
                    CheckpointManifest manifest) {
  const std::vector<std::string> parts = manifest.files;
  for (std::string& file : manifest.files) file = name_in_store(file, unfinished);
  std::vector<std::uint64_t> bytes_of_parts(parts.size());
  WorkCrew(kFilesAtATime).each(parts.size(), [&](std::size_t i) {
    const std::string path = unfinished + "/" + parts[i];
    put_part(checkpoint + "/" + manifest.files[i], path);
    bytes_of_parts[i] = std::filesystem::file_size(path);
  });
  require_objects(checkpoint, manifest.files, bytes_of_parts);
  const std::vector<std::byte> bytes = encode_manifest(manifest);
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), bytes.data() + offset, out.size());
  };
  const std::string url = manifest_url(checkpoint);
  if (find_storage(url)->put(url, bytes.size(), read, PutMode::create)) return;
  fail(Errc::unavailable,
       "{} was made by another job meanwhile: give each job a folder of checkpoints of its own",
       checkpoint);
}

void remove_checkpoint_objects(const std::string& checkpoint) {
  const StoragePtr storage = find_storage(checkpoint);
  storage->remove(manifest_url(checkpoint));
  for (const StoredObject& object : storage->list(checkpoint + "/")) storage->remove(object.url);
}

void require_objects(const std::string& checkpoint, const std::vector<std::string>& names,
                     std::span<const std::uint64_t> bytes) {
  std::map<std::string, std::uint64_t> stored;
  for (const StoredObject& object : find_storage(checkpoint)->list(checkpoint + "/")) {
    stored[object.url] = object.bytes;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string url = checkpoint + "/" + names[i];
    const auto found = stored.find(url);
    if (found == stored.end()) fail(Errc::not_found, "{} doesn't exist", url);
    if (found->second >= bytes[i]) continue;
    fail(Errc::corrupt, "{} has {} bytes: expected {}", url, found->second, bytes[i]);
  }
}

}  // namespace weft
