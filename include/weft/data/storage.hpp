#pragma once
/// Storage: the interface to object stores that hold checkpoints, datasets and files of tensors.
///
/// Functions that take the path of a checkpoint, dataset or file of tensors also take a URL such as
/// "s3://bucket/prefix". Amazon S3, and servers that speak its protocol, work without further
/// setup; docs/using.md says which environment variables choose account, region and server. For
/// another scheme, a program passes its own Storage to register_storage().

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// An object as it was when the storage looked it up.
struct StoredObject {
  std::string url{};
  std::uint64_t bytes = 0;
  /// A text that changes when the bytes under the URL change, as S3's ETag does.
  std::string version{};

  friend bool operator==(const StoredObject&, const StoredObject&) = default;
};

/// Fills `out` with the bytes to store, starting at `offset`. Any thread may call it.
using ByteSource = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;

/// replace: put() may replace an object that exists. create: put() may not do so.
enum class PutMode : std::uint8_t { replace = 0, create = 1 };

/// Base class of object stores. Any thread may make any call, also several threads at the same
/// time. A call returns when the work is done; an implementation itself retries where that can
/// help. Calls throw Error with the URL: io, or unavailable if the store can't be used at all.
class Storage {
 public:
  virtual ~Storage() = default;

  /// Looks up an object; returns nothing if there is none.
  virtual std::optional<StoredObject> open(const std::string& url) = 0;
  /// Fills `out` with bytes of the object from `offset` on; the object has at least offset +
  /// out.size() bytes. Throws io if the object has changed its version since open().
  virtual void read(const StoredObject& object, std::uint64_t offset, std::span<std::byte> out) = 0;
  /// Stores an object of `bytes` bytes. Readers see it complete, or not at all. Returns false, and
  /// changes nothing, if an object exists and `mode` doesn't allow replacing it. Throws what
  /// `source` throws.
  virtual bool put(const std::string& url, std::uint64_t bytes, const ByteSource& source,
                   PutMode mode) = 0;
  /// Returns all objects whose URLs begin with `prefix`, including all that were put before this
  /// call.
  virtual std::vector<StoredObject> list(const std::string& prefix) = 0;
  /// Removes an object if it exists.
  virtual void remove(const std::string& url) = 0;
};
using StoragePtr = std::shared_ptr<Storage>;

/// Makes this process use `storage` for URLs "SCHEME://..." from now on; "s3" can be replaced too.
/// Workers are other processes, so register before fit(), and with named loops before
/// worker_main(). Throws invalid_argument for a scheme with characters other than a-z, 0-9, '+',
/// '-' and '.', for "file", and for a null storage.
void register_storage(const std::string& scheme, StoragePtr storage);

}  // namespace weft
