// Tests that stored executables are used again, and that programs are compiled again if their
// stored executable can't be used.

#include "chips/pjrt/cpu_devices.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/fake_pjrt/loaded_fake.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/chips/pjrt/sum_module.hpp"

namespace weft::pjrt::cpu_devices_test {
namespace {

namespace fs = std::filesystem;
using testing::kSum;
using testing::LoadedFake;

/// A folder of executables. Each compile() does what it does in a new process, because the test
/// keeps no executable.
class StoredExecutables : public ::testing::Test {
 protected:
  static std::shared_ptr<Client> client_of(LoadedFake& fake) {
    return Client::make(Plugin::load(fake.path()), {}, [](const std::string&) {});
  }
  void compile(Client& client) const {
    const auto executable = CpuDevices::of_process().compile(client, std::string(kSum), store_);
    EXPECT_EQ(executable->num_outputs(), 1U);
  }
  void compile() const { compile(*client_); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(folder_)) files.push_back(file.path());
    return files;
  }
  /// Expects that exactly one line was logged since the last call, and that it contains `words`.
  void expect_line(const std::string& words) {
    ASSERT_EQ(lines_.size(), 1U);
    EXPECT_NE(lines_[0].find(words), std::string::npos) << lines_[0];
    lines_.clear();
  }

  const testing::TemporaryFolder parent_{};
  const std::string folder_ = parent_.path() + "/compiled";
  std::vector<std::string> lines_{};
  const CompiledStore store_{folder_, [this](const std::string& line) { lines_.push_back(line); }};
  LoadedFake fake_{};
  std::shared_ptr<Client> client_ = client_of(fake_);
};

TEST_F(StoredExecutables, AreNotCompiledAgain) {
  compile();
  compile();
  EXPECT_EQ(fake_->compilations, 1);
  EXPECT_EQ(files().size(), 1U);
  client_->set_flag("xla_cpu_use_xnnpack", false);
  compile();
  EXPECT_EQ(fake_->compilations, 2) << "a flag is a part of the key";
  EXPECT_EQ(files().size(), 2U);
  EXPECT_EQ(lines_, std::vector<std::string>{});
}

TEST_F(StoredExecutables, OfAnotherPluginAreNotUsed) {
  compile();
  LoadedFake other;
  compile(*client_of(other));
  EXPECT_EQ(other->compilations, 1);
  EXPECT_EQ(lines_, std::vector<std::string>{});
}

TEST_F(StoredExecutables, ThatAreTornAreCompiledAgain) {
  compile();
  const fs::path file = files().at(0);
  const auto whole = fs::file_size(file);
  for (const auto bytes : {std::uintmax_t{0}, std::uintmax_t{30}, whole - 1}) {
    fs::resize_file(file, bytes);
    compile();
    expect_line("the program is compiled again");
    EXPECT_EQ(fs::file_size(file), whole) << "it is stored again";
  }
  EXPECT_EQ(fake_->compilations, 4);
  compile();
  EXPECT_EQ(fake_->compilations, 4);
}

/// Simulates two programs whose keys have the same hash, and therefore the same file name.
TEST_F(StoredExecutables, UnderAnotherKeyAreCompiledAgain) {
  compile();
  const fs::path own = files().at(0);
  client_->set_flag("xla_cpu_use_xnnpack", false);
  compile();
  for (const fs::path& file : files()) {
    if (file != own) fs::copy_file(own, file, fs::copy_options::overwrite_existing);
  }
  compile();
  expect_line("it is that of another program");
  EXPECT_EQ(fake_->compilations, 3);
}

TEST_F(StoredExecutables, ThatThePluginRefusesAreCompiledAgain) {
  compile();
  fake_->errors = {{"PJRT_Executable_DeserializeAndLoad", {13, "made by another build"}}};
  compile();
  expect_line("made by another build; the program is compiled again");
  EXPECT_EQ(fake_->compilations, 2);
}

TEST_F(StoredExecutables, AreNoneIfThePluginCantSerialize) {
  fake_->errors = {{"PJRT_Executable_Serialize", {12, "not implemented"}}};
  compile();
  expect_line("not implemented; the compiled program isn't kept");
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(StoredExecutables, AreNoneIfTheFolderCantBeMade) {
  std::ofstream{folder_} << "a file";
  compile();
  expect_line("WEFT_COMPILE_CACHE");
}

}  // namespace
}  // namespace weft::pjrt::cpu_devices_test
