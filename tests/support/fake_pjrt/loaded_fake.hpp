#pragma once
/// LoadedFake: a loaded copy of the fake plug-in. Each test has its own copy.

#include <dlfcn.h>

#include <filesystem>
#include <list>
#include <stdexcept>
#include <string>

#include "tests/support/fake_pjrt/fake_pjrt.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::testing {

class LoadedFake {
 public:
  explicit LoadedFake(const std::string& name = "fake_plugin.so")
      : path_(new_folder() + "/" + name) {
    std::filesystem::copy_file(WEFT_FAKE_PJRT, path_);
    void* const library = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    plugin_ = reinterpret_cast<FakePluginFunction>(::dlsym(library, kFakePluginSymbol))();
  }

  const std::string& path() const { return path_; }
  FakePlugin* operator->() { return plugin_; }

 private:
  /// Returns a new folder for a copy. Copies stay until the process ends, because a new file could
  /// get the inode of a removed copy, and dlopen() would take the file for the loaded library.
  static std::string new_folder() {
    static std::list<TemporaryFolder> folders;
    return folders.emplace_back().path();
  }

  std::string path_;
  FakePlugin* plugin_;
};

}  // namespace weft::testing
