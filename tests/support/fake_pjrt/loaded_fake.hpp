#pragma once
/// Loads a copy of the fake plug-in, so that each test has one of its own.

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
  /// The copies stay until the process ends. A later file could get the inode of a removed one, and
  /// dlopen() would take it for the library that is already loaded.
  static std::string new_folder() {
    static std::list<TemporaryFolder> folders;
    return folders.emplace_back().path();
  }

  std::string path_;
  FakePlugin* plugin_;
};

}  // namespace weft::testing
