#include "data/remote/storages.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/ranges.h>
#include <weft/tensor/error.hpp>

#include "data/files/plain_file.hpp"
#include "data/remote/s3_storage.hpp"

namespace weft {
namespace {

constexpr const char* kS3 = "s3";

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

struct Registered {
  std::mutex mutex{};
  std::map<std::string, StoragePtr> by_scheme{{kS3, nullptr}};  // S3 is created at its first use
};
Registered& registered() {
  static Registered all;
  return all;
}

}  // namespace

void register_storage(const std::string& scheme, StoragePtr storage) {
  const bool is_known = !scheme.empty() && scheme == url_scheme(scheme + "://");
  if (!is_known || scheme != lower(scheme) || scheme == kLocalScheme) {
    fail(Errc::invalid_argument,
         "register_storage: scheme = \"{}\": expected letters from a to z, digits, '+', '-' and "
         "'.', that begin with a letter, and not \"file\"",
         scheme);
  }
  if (storage == nullptr) {
    fail(Errc::invalid_argument, "register_storage(\"{}\"): the storage is null", scheme);
  }
  const std::lock_guard lock(registered().mutex);
  registered().by_scheme[scheme] = std::move(storage);
}

bool is_remote(std::string_view path) {
  const std::string_view scheme = url_scheme(path);
  return !scheme.empty() && scheme != kLocalScheme;
}

StoragePtr find_storage(std::string_view path, std::string_view option) {
  if (!is_remote(path)) {
    require_local_path(path, option);
    return nullptr;
  }
  const std::string scheme = lower(url_scheme(path));
  const std::lock_guard lock(registered().mutex);
  auto& by_scheme = registered().by_scheme;
  const auto found = by_scheme.find(scheme);
  if (found == by_scheme.end()) {
    std::vector<std::string> known;
    for (const auto& [name, storage] : by_scheme) known.push_back(name + "://");
    fail(Errc::unavailable,
         "{}{}\"{}\" is a URL, but no storage is registered for {}://: expected a path of this "
         "machine or a URL with {}; add a storage by register_storage() (<weft/data.hpp>)",
         option, option.empty() ? "" : " = ", path, scheme, fmt::join(known, ", "));
  }
  if (found->second == nullptr) found->second = make_s3_storage(s3_settings());
  return found->second;
}

void require_storage(std::string_view path, std::string_view option) {
  (void)find_storage(path, option);
}

std::vector<std::byte> read_object(const std::string& url, std::size_t bytes_max) {
  const StoragePtr storage = find_storage(url);
  const auto object = storage->open(url);
  if (!object) fail(Errc::not_found, "{} doesn't exist", url);
  if (object->bytes > bytes_max) {
    fail(Errc::invalid_argument, "{} has more than {} bytes, the maximum that can be read", url,
         bytes_max);
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(object->bytes));
  storage->read(*object, 0, bytes);
  return bytes;
}

std::string without_last_slash(std::string path) {
  while (path.ends_with('/') && is_remote(path.substr(0, path.size() - 1))) path.pop_back();
  return path;
}

std::string parent_url(const std::string& url) { return url.substr(0, url.rfind('/')); }

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace weft
