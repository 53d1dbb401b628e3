#include "data/remote/object_cache.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <thread>

#include <weft/tensor/error.hpp>

#include "data/remote/storages.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/memory_storage.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::object_cache_test {
namespace {

using testing::expect_error;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ObjectCache : public ::testing::Test {
 protected:
  ObjectCache() {
    ::setenv("WEFT_CACHE", cache_.path().c_str(), 1);
    register_storage("mem", storage_);
  }
  ~ObjectCache() override { ::unsetenv("WEFT_CACHE"); }

  const testing::TemporaryFolder cache_;
  const std::shared_ptr<testing::MemoryStorage> storage_ =
      std::make_shared<testing::MemoryStorage>();
};

TEST_F(ObjectCache, CopiesAnObjectOnce) {
  storage_->put_text("mem://b/x/file", "first");
  const std::string copy = local_copy("mem://b/x/file");
  EXPECT_EQ(text_of(copy), "first");
  EXPECT_EQ(local_copy("mem://b/x/file"), copy);
  EXPECT_EQ(storage_->reads(), 1);
  EXPECT_EQ(local_copy("/a/path"), "/a/path");
}

TEST_F(ObjectCache, CopiesAnotherVersionAgain) {
  storage_->put_text("mem://b/file", "first");
  const std::string copy = local_copy("mem://b/file");
  std::ifstream opened(copy);
  storage_->put_text("mem://b/file", "other");
  EXPECT_EQ(text_of(local_copy("mem://b/file")), "other");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(opened), {}), "first")
      << "who has the old copy open keeps it";
}

TEST_F(ObjectCache, CopiesAgainWhatSomebodyCutOrRemoved) {
  storage_->put_text("mem://b/file", "first");
  const std::string copy = local_copy("mem://b/file");
  std::filesystem::resize_file(copy, 2);
  EXPECT_EQ(text_of(local_copy("mem://b/file")), "first");
  std::filesystem::remove_all(cache_.path() + "/copies");
  EXPECT_EQ(text_of(local_copy("mem://b/file")), "first");
}

/// Objects don't share an entry of the cache if one's name is a folder in the other's, if their
/// names are equal but their folders differ, or if a name equals that of a folder of the cache.
TEST_F(ObjectCache, KeepsObjectsApart) {
  for (const char* url : {"mem://b/a", "mem://b/a/a", "mem://b/c/a", "mem://b/files/a",
                          "mem://b/a%2Fa", "mem://b//a", "mem://b/versions", "mem://b/kept"}) {
    storage_->put_text(url, url);
  }
  for (int pass = 0; pass < 2; ++pass) {
    for (const std::string& url : storage_->urls()) EXPECT_EQ(text_of(local_copy(url)), url);
  }
}

TEST_F(ObjectCache, LetsOneThreadCopyForAll) {
  storage_->put_text("mem://b/file", std::string(1 << 16, 'x'));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([] { EXPECT_EQ(text_of(local_copy("mem://b/file")).size(), 1U << 16); });
    }
  }
  EXPECT_EQ(storage_->reads(), 1);
}

TEST_F(ObjectCache, HasNothingOfAnObjectThatCouldNotBeRead) {
  storage_->put_text("mem://b/file", "first");
  storage_->fail_from(1);
  expect_error(Errc::io, {"gone"}, [] { (void)local_copy("mem://b/file"); });
  storage_->fail_from(-1);
  EXPECT_EQ(text_of(local_copy("mem://b/file")), "first");
}

TEST_F(ObjectCache, RefusesWhatCanBeNoFile) {
  expect_error(Errc::not_found, {"mem://b/absent"}, [] { (void)local_copy("mem://b/absent"); });
  for (const char* url : {"mem://b/..", "mem://b/x/.", "mem://b/x/"}) {
    storage_->put_text(url, "x");
    expect_error(Errc::invalid_argument, {url, "valid file name"}, [&] { (void)local_copy(url); });
  }
}

TEST_F(ObjectCache, KeepsTheCopiesOfOneFolderThatIsNotInUse) {
  const auto copies = [&](const std::string& folder) {
    storage_->put_text(folder + "/lock", "");
    return local_folder(folder, {"lock"});
  };
  const std::string first = copies("mem://b/1");
  keep_one_copy("mem://b", "mem://b/1", "lock");
  keep_one_copy("mem://b", "mem://b/1", "lock");
  EXPECT_TRUE(std::filesystem::exists(first));
  const std::string second = copies("mem://b/2");
  keep_one_copy("mem://b", "mem://b/2", "lock");
  EXPECT_FALSE(std::filesystem::exists(first));
  EXPECT_TRUE(std::filesystem::exists(second));
}

TEST(Storages, AreThoseOfTheirSchemes) {
  const auto storage = std::make_shared<testing::MemoryStorage>();
  register_storage("x-1.y+z", storage);
  EXPECT_EQ(find_storage("x-1.y+z://b"), storage);
  EXPECT_EQ(find_storage("X-1.Y+Z://b"), storage);
  EXPECT_EQ(find_storage("/x://b"), nullptr);
  for (const char* url : {"gs://bucket/x", "http://host/x", "hdfs:///x"}) {
    expect_error(Errc::unavailable, {"load: path", url, "s3://", "register_storage()"},
                 [&] { require_storage(url, "load: path"); });
  }
  EXPECT_EQ(without_last_slash("s3://b/x//"), "s3://b/x");
  EXPECT_EQ(without_last_slash("s3:///"), "s3://");
  EXPECT_EQ(without_last_slash("/x/"), "/x/");
  expect_error(Errc::unavailable, {"file:///x", "without \"file://\""},
               [] { require_storage("file:///x"); });
  for (const char* scheme : {"", "S4", "file", "1x", "a:b", "a/b"}) {
    expect_error(Errc::invalid_argument, {"register_storage"},
                 [&] { register_storage(scheme, storage); });
  }
  expect_error(Errc::invalid_argument, {"null"}, [] { register_storage("gs", nullptr); });
}

}  // namespace
}  // namespace weft::object_cache_test
