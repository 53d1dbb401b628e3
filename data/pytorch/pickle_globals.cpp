#include "data/pytorch/pickle_globals.hpp"

#include <array>

namespace weft {
namespace {

constexpr std::array<TorchElement, 20> kElements{
    {{"float32", "FloatStorage", "F32", 4},
     {"float64", "DoubleStorage", "F64", 8},
     {"float16", "HalfStorage", "F16", 2},
     {"bfloat16", "BFloat16Storage", "BF16", 2},
     {"int64", "LongStorage", "I64", 8},
     {"int32", "IntStorage", "I32", 4},
     {"int16", "ShortStorage", "I16", 2},
     {"int8", "CharStorage", "I8", 1},
     {"uint8", "ByteStorage", "U8", 1},
     {"bool", "BoolStorage", "BOOL", 1},
     {"uint16", "", "U16", 2},
     {"uint32", "", "U32", 4},
     {"uint64", "", "U64", 8},
     {"complex64", "ComplexFloatStorage", "C64", 8},
     {"complex128", "ComplexDoubleStorage", "C128", 16},
     {"float8_e5m2", "", "F8_E5M2", 1},
     {"float8_e4m3fn", "", "F8_E4M3", 1},
     {"float8_e5m2fnuz", "", "F8_E5M2FNUZ", 1},
     {"float8_e4m3fnuz", "", "F8_E4M3FNUZ", 1},
     {"float8_e8m0fnu", "", "F8_E8M0", 1}}};

struct Named {
  std::string_view module;
  std::string_view name;
  PickleGlobal global;
};
constexpr std::array kNamed{
    Named{"collections", "OrderedDict", PickleGlobal::ordered_dict},
    Named{"builtins", "set", PickleGlobal::set},
    Named{"__builtin__", "set", PickleGlobal::set},
    Named{"_codecs", "encode", PickleGlobal::encode},
    Named{"torch", "Size", PickleGlobal::size},
    Named{"torch", "device", PickleGlobal::device},
    Named{"torch", "Tensor", PickleGlobal::tensor_class},
    Named{"torch.nn.parameter", "Parameter", PickleGlobal::tensor_class},
    Named{"torch.nn.parameter", "Buffer", PickleGlobal::tensor_class},
    Named{"torch._utils", "_rebuild_tensor", PickleGlobal::rebuild_tensor},
    Named{"torch._utils", "_rebuild_tensor_v2", PickleGlobal::rebuild_tensor},
    Named{"torch._utils", "_rebuild_tensor_v3", PickleGlobal::rebuild_tensor_v3},
    Named{"torch._utils", "_rebuild_parameter", PickleGlobal::rebuild_parameter},
    Named{"torch._utils", "_rebuild_parameter_with_state", PickleGlobal::rebuild_parameter},
    Named{"torch._tensor", "_rebuild_from_type_v2", PickleGlobal::rebuild_from_type},
    Named{"torch", "UntypedStorage", PickleGlobal::storage},
    Named{"torch.storage", "UntypedStorage", PickleGlobal::storage},
};

}  // namespace

std::optional<KnownGlobal> find_pickle_global(std::string_view module, std::string_view name) {
  for (const Named& named : kNamed) {
    if (named.module == module && named.name == name) return KnownGlobal{named.global};
  }
  if (module != "torch" || name.empty()) return std::nullopt;
  for (const TorchElement& element : kElements) {
    if (element.storage == name) return KnownGlobal{PickleGlobal::storage, &element};
    if (element.torch == name) return KnownGlobal{PickleGlobal::dtype, &element};
  }
  return std::nullopt;
}

}  // namespace weft
