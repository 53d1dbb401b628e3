#include "actors/runtime/plan_store.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/fingerprint.hpp"
#include "spmd/text/text.hpp"

namespace weft::plan_store_test {
namespace {

namespace fs = std::filesystem;

class PlanStoreTest : public ::testing::Test {
 protected:
  ~PlanStoreTest() override { fs::remove_all(folder); }

  std::shared_ptr<const Plan> load() const { return store.load(fingerprint(program), program); }
  /// Returns the path of the only file in the store's folder.
  fs::path file() const { return fs::directory_iterator(folder)->path(); }

  std::string folder = ::testing::TempDir() + fmt::format("weft-plans-{}", ::getpid());
  Mesh mesh = Mesh({2}, {"data"});
  Program program = parse_program(R"(program(%0: f32[8] data "x" [{"data"}]) {
  %1 = negate %0 : f32[8]
  return %1 "y" [{?}]
})",
                                  mesh);
  PlanStore store = PlanStore(folder, mesh, kCpuTarget);
};

TEST_F(PlanStoreTest, HasWhatItKept) {
  EXPECT_FALSE(load());
  store.keep(fingerprint(program), compile(program, mesh, kCpuTarget));
  ASSERT_TRUE(load());
  EXPECT_EQ(load()->program.num_ops(), compile(program, mesh, kCpuTarget).program.num_ops());
}

TEST_F(PlanStoreTest, HasNoPlanOfAnotherTarget) {
  store.keep(fingerprint(program), compile(program, mesh, kCpuTarget));
  Target other = kCpuTarget;
  other.name = "other";
  EXPECT_FALSE(PlanStore(folder, mesh, other).load(fingerprint(program), program));
}

/// All workers read plans from this folder, so whatever is there in place of a plan must not block
/// them.
TEST_F(PlanStoreTest, HasNoneWhereThereIsNoPlainFile) {
  store.keep(fingerprint(program), compile(program, mesh, kCpuTarget));
  const fs::path path = file();
  std::ofstream(path) << "not a plan";
  EXPECT_FALSE(load());
  fs::resize_file(path, std::uintmax_t{1} << 40);
  EXPECT_FALSE(load());
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(load());
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_FALSE(load());
}

}  // namespace
}  // namespace weft::plan_store_test
