#pragma once
/// Segment: a named piece of shared memory, which has no memory until it is reserved.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Owns a mapping. Movable. Doesn't own the name: names outlive processes, and remove() removes
/// them. The complete capacity is mapped at once and never moves. There is memory only where
/// reserve() was called; access to other parts may raise SIGBUS when /dev/shm is full. A mapping of
/// 2 MiB or more is aligned for huge pages and requests them.
class Segment {
 public:
  /// Creates a segment of mode 0600. Throws io if it can't be created or the name exists (the
  /// message has its owner and age), and invalid_argument if the name isn't a plain file name or
  /// the capacity is 0.
  static Segment create(const std::string& name, std::size_t capacity);
  /// Maps an existing segment. Throws not_found if it doesn't exist or has no bytes yet, and
  /// corrupt if it isn't a plain file of this user with mode 0600, or has fewer than `bytes_min`
  /// bytes.
  static Segment open(const std::string& name, bool read_only, std::size_t bytes_min);
  /// Makes memory without a name, for chips that are threads of one process.
  static Segment anonymous(std::size_t capacity);
  /// Removes the name. Mappings remain. Returns false if there was no such name.
  static bool remove(const std::string& name) noexcept;
  /// Returns this user's names in /dev/shm that begin with `prefix`, sorted.
  static std::vector<std::string> list(std::string_view prefix);

  Segment(Segment&&) noexcept;
  Segment& operator=(Segment&&) noexcept;
  ~Segment();

  std::byte* data() const;
  std::size_t capacity() const;
  const std::string& name() const;  ///< "" for an anonymous segment
  bool read_only() const;
  int descriptor() const;  ///< descriptor of the mapped file; the segment closes it

  /// Allocates the range [offset, offset + bytes) of the segment; new memory is zero. Throws
  /// no_space with the needed and free bytes of /dev/shm, and how to enlarge it; then nothing has
  /// changed, except that huge pages may have been allocated. Thread-safe. Makes no system call for
  /// a range that this object has reserved before.
  void reserve(std::size_t offset, std::size_t bytes);
  /// Prefers the NUMA node of the calling thread: memory that any process reserves or first touches
  /// from now on comes from this node, as long as the node has free memory. If the system refuses,
  /// memory comes from the node of the thread that first touches it, as without this call.
  void prefer_this_node() noexcept;
  /// Hides the mapping and the file from children that are forked from now on. So the memory is
  /// freed when the processes that use it end.
  void hide_from_children();

 private:
  struct State;
  explicit Segment(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weft
