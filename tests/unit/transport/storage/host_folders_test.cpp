#include "transport/storage/host_folders.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/support/checkpoint_world.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft::host_folders_test {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<std::string>;

HostFolder folder_of(int host, bool is_shared, const Paths& copies = {}) {
  return {.host = host,
          .machine = "node",
          .path = "/disk/" + std::to_string(host),
          .is_shared = is_shared,
          .newest = copies.empty() ? 0U : 640U,
          .copies = copies};
}

const std::vector<OfferedCheckpoint> kOffered{{640, "id-640", "/disk/0/checkpoint_000640"},
                                              {600, "id-600", "/disk/0/checkpoint_000600"}};

TEST(HostFolders, RefuseAFolderThatSomeHostsShare) {
  HostFolders shared(3, HostStorage::unknown, "/data");
  EXPECT_EQ(shared.add(folder_of(1, true)), std::nullopt);
  EXPECT_EQ(shared.kind(), HostStorage::shared);
  EXPECT_EQ(shared.paths(), Paths());
  const auto refusal = shared.add(folder_of(2, false));
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->find("host 2 (node) doesn't see the folder of checkpoints /data"),
            std::string::npos)
      << *refusal;
  HostFolders own(3, HostStorage::unknown, "/disk/0");
  EXPECT_EQ(own.add(folder_of(2, false)), std::nullopt);
  EXPECT_EQ(own.add(folder_of(1, false)), std::nullopt);
  EXPECT_EQ(own.paths(), (Paths{"/disk/0", "/disk/1", "/disk/2"}));
  EXPECT_TRUE(own.add(folder_of(1, true)));
}

TEST(HostFolders, FindTheNewestCheckpointOfWhichAllHostsHaveACopy) {
  HostFolders folders(3, HostStorage::unknown, "/disk/0");
  EXPECT_EQ(folders.first_common(2), 0U) << "no other host has told anything";
  folders.add(folder_of(1, false, {"/disk/1/a", "/disk/1/b"}));
  EXPECT_EQ(folders.first_common(2), 0U);
  folders.add(folder_of(2, false, {"", "/disk/2/b"}));
  EXPECT_EQ(folders.first_common(2), 1U);
  EXPECT_EQ(folders.copies(kOffered, 1), (Paths{kOffered[1].path, "/disk/1/b", "/disk/2/b"}));
  EXPECT_NE(folders.missing_text(kOffered).find(
                "host 2 (node, /disk/2) has no whole copy of /disk/0/checkpoint_000640"),
            std::string::npos)
      << folders.missing_text(kOffered);
  folders.add(folder_of(2, false, {"", ""}));
  EXPECT_EQ(folders.first_common(2), std::nullopt);
}

TEST(HostFolders, LetNoJobBeginBeforeACheckpointOfAHost) {
  HostFolders folders(2, HostStorage::unknown, "/disk/0");
  folders.add(folder_of(1, false, {"/disk/1/a"}));
  EXPECT_EQ(folders.refuse_begin(640), std::nullopt);
  const auto refusal = folders.refuse_begin(0);
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->find("host 1 (node, /disk/1) has a checkpoint of step 640, but host 0"),
            std::string::npos)
      << *refusal;
}

TEST(HostFolders, FindCopiesThatAreWhole) {
  const testing::TemporaryFolder folder;
  const testing::Tree tree{{"w", {DType::f32, {2, 3}}, std::vector<std::byte>(24, std::byte{1})}};
  make_folders(folder.path() + "/0");
  const auto save = [&](const std::string& host, std::uint64_t step) {
    return testing::save_tree(posix_file_system(), folder.path() + "/" + host, tree,
                              Mesh({2}, {"data"}), {Sharding::closed()},
                              {.step = step, .workers = 2});
  };
  std::vector<OfferedCheckpoint> offered;
  for (const std::uint64_t step : {30, 20, 10}) {
    const std::string path = save("0", step);
    offered.push_back({step, id_of_copy(path), path});
  }
  const std::string here = folder.path() + "/1";
  fs::copy(folder.path() + "/0", here, fs::copy_options::recursive);
  fs::resize_file(here + "/checkpoint_000030/" + part_name(1, 2), 1);
  fs::rename(here + "/checkpoint_000010", here + "/checkpoint_000010-3");
  const Paths expected{"", here + "/checkpoint_000020", here + "/checkpoint_000010-3"};
  EXPECT_EQ(find_copies(here, "", offered), expected);
  EXPECT_EQ(find_copies(folder.path() + "/2", here, offered), expected);
  const Paths one{"", expected[1], ""};
  EXPECT_EQ(find_copies(folder.path() + "/2", expected[1], offered), one);
}

}  // namespace
}  // namespace weft::host_folders_test
