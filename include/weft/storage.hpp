#pragma once
/// Storage: an object store, in which checkpoints, datasets and files of tensors may lie.
///
/// Wherever weft takes the path of one of these, it takes a URL too: "s3://bucket/prefix". Amazon
/// S3, and servers that speak its protocol, are there without further ado; docs/using.md says which
/// variables of the environment choose account, region and server. For another scheme a program
/// gives a Storage of its own to register_storage().

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// An object as it was when it was looked at.
struct StoredObject {
  std::string url{};
  std::uint64_t bytes = 0;
  /// Differs for other bytes under the same URL, as S3's ETag does.
  std::string version{};

  friend bool operator==(const StoredObject&, const StoredObject&) = default;
};

/// Fills `out` with the bytes from `offset` on of what is to be stored; called by any thread.
using ByteSource = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;

/// Whether a put may replace an object.
enum class PutMode : std::uint8_t { replace = 0, create = 1 };

/// All calls may come from any thread, also at the same time, and return when they have been done;
/// what can be mended by trying again is their own business. They throw Error with the URL: io, or
/// unavailable if the store can't be used at all.
class Storage {
 public:
  virtual ~Storage() = default;

  /// Looks for an object; absent if there is none.
  virtual std::optional<StoredObject> open(const std::string& url) = 0;
  /// Fills `out` with the object's bytes from `offset` on, which it has. Throws io if the object
  /// has another version by now.
  virtual void read(const StoredObject& object, std::uint64_t offset, std::span<std::byte> out) = 0;
  /// Stores an object of so many bytes. Others see it whole, or not at all. False, and nothing has
  /// changed, if there is one already that mustn't be replaced. Throws what `source` throws.
  virtual bool put(const std::string& url, std::uint64_t bytes, const ByteSource& source,
                   PutMode mode) = 0;
  /// All objects whose URLs begin with `prefix`, with those that were put before this call.
  virtual std::vector<StoredObject> list(const std::string& prefix) = 0;
  /// Removes an object, if it is there.
  virtual void remove(const std::string& url) = 0;
};
using StoragePtr = std::shared_ptr<Storage>;

/// From now on URLs "SCHEME://..." are of this storage, in this process; "s3" can be replaced, too.
/// Workers are other processes: register before fit(), and with named loops before worker_main().
/// Throws invalid_argument for a scheme that has other characters than a-z, 0-9, '+', '-' and '.',
/// for "file", and for null.
void register_storage(const std::string& scheme, StoragePtr storage);

}  // namespace weft
