#pragma once
/// Finds the functions, classes and dtypes that weft knows in the pickle of a PyTorch file.

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

enum class PickleGlobal : std::uint8_t {
  ordered_dict,
  set,
  encode,
  size,
  device,
  tensor_class,
  rebuild_tensor,
  rebuild_tensor_v3,
  rebuild_parameter,
  rebuild_from_type,
  dtype,
  storage,
};

/// The element type of a torch dtype or a typed storage.
struct TorchElement {
  std::string_view torch{};    ///< "float32"
  std::string_view storage{};  ///< "FloatStorage"; "" if storages are untyped
  std::string_view dtype{};    ///< "F32"
  int bytes = 0;
};

struct KnownGlobal {
  PickleGlobal global = PickleGlobal::ordered_dict;
  const TorchElement* element = nullptr;  ///< element type of a dtype or a typed storage
};

/// Returns the function, class or dtype of this name, or nothing if weft doesn't know it.
std::optional<KnownGlobal> find_pickle_global(std::string_view module, std::string_view name);

}  // namespace weft
