#pragma once
/// Segment: a named piece of shared memory, sparse until it is reserved.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Movable owner of a mapping. It doesn't own the name: names outlive processes and are removed by
/// remove(). The whole capacity is mapped at once and never moves. Memory exists only where
/// reserve() was called; access to other memory may raise SIGBUS when /dev/shm is full. A mapping
/// of 2 MiB or more is aligned for huge pages and requests them.
class Segment {
 public:
  /// Creates a segment of mode 0600. Throws io if the name exists (with its owner and age) or can't
  /// be created. Throws invalid_argument if the name isn't a single file name or the capacity is 0.
  static Segment create(const std::string& name, std::size_t capacity);
  /// Maps an existing segment. Throws not_found. Throws corrupt if it isn't a plain 0600 file of
  /// this user, or is smaller than `bytes_min`.
  static Segment open(const std::string& name, bool read_only, std::size_t bytes_min);
  /// Makes memory without a name, for chips that are threads of one process.
  static Segment anonymous(std::size_t capacity);
  /// Removes the name; mappings stay. Returns false if there was no such name.
  static bool remove(const std::string& name) noexcept;
  /// Returns this user's names in /dev/shm that begin with `prefix`, sorted.
  static std::vector<std::string> list(std::string_view prefix);

  Segment(Segment&&) noexcept;
  Segment& operator=(Segment&&) noexcept;
  ~Segment();

  std::byte* data() const;
  std::size_t capacity() const;
  const std::string& name() const;  ///< empty: anonymous
  bool read_only() const;
  int descriptor() const;  ///< the mapped file; the segment closes it

  /// Allocates [offset, offset + bytes), which is zero where it is new. Throws no_space, with the
  /// needed and the free bytes of /dev/shm and how to enlarge it. In that case nothing has changed,
  /// except that huge pages already allocated stay. Thread-safe. Makes no system call for a range
  /// that this object has reserved before.
  void reserve(std::size_t offset, std::size_t bytes);
  /// From now on, memory that any process reserves or first touches comes from the NUMA node on
  /// which the calling thread runs, as long as that node has free memory. If the system refuses,
  /// memory comes from the node of the thread that touches it first, as it does without this call.
  void prefer_this_node() noexcept;
  /// Children that are forked from now on have neither the mapping nor the file, so memory is freed
  /// with the processes that use it.
  void hide_from_children();

 private:
  struct State;
  explicit Segment(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weft
