#pragma once
/// A Storage in memory that fails from a chosen call on, as if its process were killed there.

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <weft/data/storage.hpp>
#include <weft/tensor/error.hpp>

namespace weft::testing {

class MemoryStorage : public Storage {
 public:
  std::optional<StoredObject> open(const std::string& url) override {
    const std::lock_guard lock(mutex_);
    count();
    const auto found = objects_.find(url);
    if (found == objects_.end()) return std::nullopt;
    return described(*found);
  }
  void read(const StoredObject& object, std::uint64_t offset, std::span<std::byte> out) override {
    const std::lock_guard lock(mutex_);
    count();
    ++reads_;
    const auto found = objects_.find(object.url);
    if (found == objects_.end() || described(*found) != object) {
      fail(Errc::io, "{} was replaced", object.url);
    }
    std::copy_n(found->second.bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(),
                out.begin());
  }
  bool put(const std::string& url, std::uint64_t bytes, const ByteSource& source,
           PutMode mode) override {
    std::vector<std::byte> content(static_cast<std::size_t>(bytes));
    if (bytes > 0) source(0, content);
    const std::lock_guard lock(mutex_);
    count();
    if (mode == PutMode::create && objects_.contains(url)) return false;
    objects_[url] = {std::move(content), ++versions_};
    return true;
  }
  std::vector<StoredObject> list(const std::string& prefix) override {
    const std::lock_guard lock(mutex_);
    count();
    std::vector<StoredObject> found;
    for (auto at = objects_.lower_bound(prefix); at != objects_.end(); ++at) {
      if (!at->first.starts_with(prefix)) break;
      found.push_back(described(*at));
    }
    return found;
  }
  void remove(const std::string& url) override {
    const std::lock_guard lock(mutex_);
    count();
    objects_.erase(url);
  }

  void put_text(const std::string& url, std::string_view text) {
    const std::lock_guard lock(mutex_);
    const auto bytes = std::as_bytes(std::span(text));
    objects_[url] = {{bytes.begin(), bytes.end()}, ++versions_};
  }
  /// The call with this number, counted from 0, and all later calls fail; with -1 none fails.
  void fail_from(int call) {
    const std::lock_guard lock(mutex_);
    calls_ = 0;
    fails_from_ = call;
  }
  int calls() const { return calls_; }
  int reads() const { return reads_; }
  std::vector<std::string> urls() const {
    std::vector<std::string> urls;
    for (const auto& [url, object] : objects_) urls.push_back(url);
    return urls;
  }

 private:
  struct Object {
    std::vector<std::byte> bytes{};
    int version = 0;
  };
  static StoredObject described(const std::pair<const std::string, Object>& object) {
    return {.url = object.first,
            .bytes = object.second.bytes.size(),
            .version = fmt::format("\"{}\"", object.second.version)};
  }
  void count() {
    const int call = calls_++;
    if (fails_from_ >= 0 && call >= fails_from_) fail(Errc::io, "the store is gone");
  }

  std::mutex mutex_;
  std::map<std::string, Object> objects_;
  int versions_ = 0;
  int calls_ = 0;
  int reads_ = 0;
  int fails_from_ = -1;
};

}  // namespace weft::testing
