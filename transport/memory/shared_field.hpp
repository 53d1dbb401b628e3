#pragma once
/// Access to a field in shared memory that one process writes while others read.

#include <atomic>

namespace weft {

/// Shared fields are read and written only through these functions. The store releases: a reader
/// that sees it also sees everything stored before it. The load acquires: later reads are not older
/// than the field.
template <typename T>
void store_field(T& field, T value) {
  std::atomic_ref<T>(field).store(value, std::memory_order_release);
}
template <typename T>
T load_field(const T& field) {
  return std::atomic_ref<T>(const_cast<T&>(field)).load(std::memory_order_acquire);
}

}  // namespace weft
