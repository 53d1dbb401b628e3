#pragma once
/// SharedField: reads and writes fields in shared memory that one process writes while others read
/// them.

#include <atomic>

namespace weft {

/// All accesses to shared fields go through these functions. A store is a release: a reader that
/// sees its value also sees everything that was stored before. A load is an acquire: no later read
/// returns data older than the loaded value.
template <typename T>
void store_field(T& field, T value) {
  std::atomic_ref<T>(field).store(value, std::memory_order_release);
}
template <typename T>
T load_field(const T& field) {
  return std::atomic_ref<T>(const_cast<T&>(field)).load(std::memory_order_acquire);
}

}  // namespace weft
