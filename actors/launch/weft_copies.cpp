#include "actors/launch/weft_copies.hpp"

#include <weft/tensor/error.hpp>

#include "actors/process/elf_object.hpp"
#include "actors/protocol/abi.hpp"

// weft_anchor is visible, so the dynamic linker may resolve it to the definition in another copy,
// as it may do with weft's functions. The hidden alias weft_own_anchor always belongs to this copy.
extern "C" {
extern const std::uint32_t weft_anchor __attribute__((visibility("default")));
const std::uint32_t weft_anchor = WEFT_ABI;
extern const std::uint32_t weft_own_anchor __attribute__((visibility("hidden")));
}
__asm__(
    ".hidden weft_own_anchor\n"
    ".set weft_own_anchor, weft_anchor\n");

namespace weft {
namespace {

std::string file_of(const void* address) {
  const auto object = object_of(address);
  if (!object) return "?";
  return object->path.empty() ? "the executable" : object->path;
}

}  // namespace

void require_own_weft() {
  const volatile std::uint32_t* visible = &weft_anchor;
  if (*visible == kAbi) return;
  fail(Errc::version,
       "this process has two versions of weft: {} has version {}, but its calls go to the weft "
       "of {}, which has version {}; link both to the same libweft, or the plug-in with "
       "-Wl,--exclude-libs,ALL",
       file_of(&weft_own_anchor), kAbi, file_of(const_cast<const std::uint32_t*>(visible)),
       static_cast<std::uint32_t>(*visible));
}

}  // namespace weft
