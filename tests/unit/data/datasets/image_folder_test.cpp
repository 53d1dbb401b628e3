#include <weft/data/image_files.hpp>

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"

namespace weft::image_folder_test {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;

const std::string kFolder = testing::golden_path("pictures/folder").string();

class ImageFolders : public ::testing::Test {
 protected:
  ImageFolders() { fs::create_directories(folder_); }
  ~ImageFolders() override { fs::remove_all(folder_); }

  const fs::path folder_ = fs::temp_directory_path() / fmt::format("weft-pictures-{}", ::getpid());
};

TEST_F(ImageFolders, AreTorchvisions) {
  EXPECT_EQ(image_classes(kFolder), (std::vector<std::string>{"Cats", "birds"}));
  const DatasetPtr dataset = image_folder(
      kFolder, {.image = {.height = 16, .width = 24, .channels = 1, .dtype = DType::i32}});
  EXPECT_EQ(dataset->name(), kFolder);
  EXPECT_EQ(dataset->fields(),
            (std::vector<Field>{{"x", {DType::i32, {1, 16, 24}}}, {"label", {DType::i32, {}}}}));
  ASSERT_EQ(dataset->size(), 4);
  std::vector<std::int32_t> labels;
  std::vector<std::int32_t> corners;
  for (std::int64_t i = 0; i < 4; ++i) {
    const ItemBuffer item = read_item(*dataset, {.index = i});
    labels.push_back(item.view().get<std::int32_t>("label")[0]);
    corners.push_back(item.view().get<std::int32_t>("x").back());
  }
  EXPECT_EQ(labels, (std::vector<std::int32_t>{0, 1, 1, 1}));
  // The folder has the files Cats/a.jpg, birds/10.JPEG, birds/2.png and birds/more/1.jpg.
  const DatasetPtr second = image_folder(
      kFolder, {.image = {.height = 30, .width = 20, .dtype = DType::i32}, .label = "y"});
  const ItemBuffer item = read_item(*second, {.index = 1});
  EXPECT_EQ(item.view().get<std::int32_t>("y")[0], 1);
  EXPECT_NEAR(corners[0], corners[2], 12);
  EXPECT_NEAR(corners[3], corners[2], 12);
}

TEST_F(ImageFolders, ErrorsNameTheFile) {
  fs::create_directories(folder_ / "a");
  std::ofstream(folder_ / "a" / "b.jpg") << "GIF89a";
  const DatasetPtr dataset = image_folder(folder_.string());
  expect_error(Errc::corrupt, {folder_.string() + ": item 0 of epoch 0", "a/b.jpg: is GIF"},
               [&] { (void)read_item(*dataset, {}); });
  fs::remove(folder_ / "a" / "b.jpg");
  expect_error(Errc::not_found, {"a/b.jpg"}, [&] { (void)read_item(*dataset, {}); });
}

TEST_F(ImageFolders, FoldersThatAreNoneAreRefused) {
  expect_error(Errc::not_found, {"nowhere"}, [] { (void)image_folder("nowhere"); });
  expect_error(Errc::invalid_argument, {"has no folders; expected one for each class"},
               [&] { (void)image_folder(folder_.string()); });
  fs::create_directories(folder_ / "empty");
  expect_error(Errc::invalid_argument,
               {"class 'empty' has no files with one of the extensions jpg;"},
               [&] { (void)image_folder(folder_.string()); });
  fs::create_directory_symlink(folder_, folder_ / "empty" / "circle");
  expect_error(Errc::invalid_argument, {"32 folders deep"},
               [&] { (void)image_folder(folder_.string()); });
  expect_error(Errc::invalid_argument, {"two fields have the name 'x'"},
               [] { (void)image_folder(kFolder, {.label = "x"}); });
}

TEST_F(ImageFolders, FilesOfOtherKindsHaveDecodersOfTheirOwn) {
  fs::create_directories(folder_ / "b" / "more");
  fs::create_directories(folder_ / "a");
  std::ofstream(folder_ / "a" / "1.NUM") << "12";
  std::ofstream(folder_ / "b" / "more" / "2.num") << "x";
  std::ofstream(folder_ / "b" / "2.txt") << "13";
  const DatasetPtr dataset = class_folder(
      folder_.string(),
      {.extensions = "num;wav",
       .field = {"number", {DType::f32, {}}},
       .decode = [](std::span<const std::byte> file, const ItemWriter& out, ItemRandom&) {
         const std::string text(reinterpret_cast<const char*>(file.data()), file.size());
         out.get<float>("number")[0] = std::stof(text);
       }});
  ASSERT_EQ(dataset->size(), 2);
  const ItemBuffer item = read_item(*dataset, {});
  EXPECT_EQ(item.view().get<float>("number")[0], 12);
  EXPECT_EQ(item.view().get<std::int32_t>("label")[0], 0);
  expect_error(Errc::loop_failed, {"item 1 of epoch 0", "b/more/2.num: stof"},
               [&] { (void)read_item(*dataset, {.index = 1}); });
  expect_error(Errc::invalid_argument, {"no function to decode"}, [&] {
    (void)class_folder(folder_.string(), {.extensions = "num", .field = {"x", {}}});
  });
}

TEST_F(ImageFolders, LinksToNowhereAreErrorsWhenTheyAreRead) {
  fs::create_directories(folder_ / "a");
  fs::create_symlink("nowhere.png", folder_ / "a" / "b.png");
  const DatasetPtr dataset = image_folder(folder_.string());
  expect_error(Errc::not_found, {"a/b.png"}, [&] { (void)read_item(*dataset, {}); });
}

}  // namespace
}  // namespace weft::image_folder_test
