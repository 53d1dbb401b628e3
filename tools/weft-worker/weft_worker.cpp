/// weft-worker: a worker process for loops in shared libraries whose host program doesn't call
/// weft::worker_main(). It contains no copy of weft: it loads the library, and calls the worker's
/// entry function of the copy of weft that the library contains or uses. An ELF note of that copy
/// tells where the function is. A Trainer with scaling.worker_executable = weft::plugin_worker()
/// starts it.

#include <dlfcn.h>

#include <cstdlib>
#include <exception>
#include <string>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "actors/process/elf_object.hpp"

namespace {

using Entry = void (*)();

std::string required(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    weft::fail(weft::Errc::invalid_argument,
               "{} is not set: this program is started by a weft::Trainer, for a loop in a shared "
               "library",
               name);
  }
  return value;
}

/// Returns the entry function of the library itself, or else of a libweft that the library has
/// loaded.
Entry find_entry(const std::string& library) {
  Entry found = nullptr;
  for (const weft::WeftCopy& copy : weft::weft_copies()) {
    if (copy.entry == 0) continue;
    found = reinterpret_cast<Entry>(copy.entry);
    if (copy.object.path == library) break;
  }
  if (found == nullptr) {
    weft::fail(weft::Errc::not_found, "{} doesn't contain weft and hasn't loaded it", library);
  }
  return found;
}

}  // namespace

int main() {
  try {
    const std::string library = required("WEFT_LOOP_OBJECT");
    // Checks the build before dlopen(), which runs the constructors of the library.
    weft::require_build(library, required("WEFT_LOOP_BUILD"));
    if (::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) == nullptr) {
      weft::fail(weft::Errc::not_found, "can't load {}: {}", library, ::dlerror());
    }
    find_entry(library)();
  } catch (const std::exception& e) {
    fmt::print(stderr, "weft-worker: {}\n", e.what());
  }
  return 1;
}
