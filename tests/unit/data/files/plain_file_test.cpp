#include "data/files/plain_file.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::plain_file_test {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;

TEST(LocalPath, IsNoUrl) {
  for (const std::string url :
       {"s3://bucket/x", "S3://bucket/x", "gs://bucket", "https://host/x.safetensors", "hdfs:///x",
        "az://x", "hf://org/model", "s3a+v2.x-y://b", "memory://"}) {
    SCOPED_TRACE(url);
    expect_error(Errc::unavailable,
                 {"run.storage_path = \"" + url + "\" is a URL", "path of this machine"},
                 [&] { require_local_path(url, "run.storage_path"); });
    expect_error(Errc::unavailable, {"\"" + url + "\" is a URL"}, [&] { open_plain_file(url); });
  }
  expect_error(Errc::unavailable, {"without \"file://\""},
               [] { require_local_path("file:///tmp/x", "load: path"); });
}

TEST(LocalPath, MayHaveColonsAndSlashes) {
  for (const char* path : {"", "x", "./s3://bucket", "/tmp/s3://x", "s3:/x", "s3:", "://x",
                           "1a://x", "a b://x", "C:\\x", "~/x", "x/y://z"}) {
    EXPECT_NO_THROW(require_local_path(path)) << path;
  }
}

TEST(LocalPath, OfAVariableIsNamedWithIt) {
  ::setenv("WEFT_TEST_PATH", "s3://bucket", 1);
  expect_error(Errc::unavailable, {"WEFT_TEST_PATH = \"s3://bucket\""},
               [] { path_variable("WEFT_TEST_PATH"); });
  ::unsetenv("WEFT_TEST_PATH");
  EXPECT_EQ(path_variable("WEFT_TEST_PATH"), "");
}

/// open_plain_file() never waits for a writer, a peer or a device.
TEST(PlainFile, IsOpenedOrItsKindIsNamed) {
  const testing::TemporaryFolder folder;
  const auto at = [&](const char* name) { return folder.path() + "/" + name; };
  std::ofstream(at("plain")) << "x";
  const int descriptor = open_plain_file(at("plain"));
  EXPECT_GE(descriptor, 0);
  ::close(descriptor);
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, at("socket").c_str(), sizeof address.sun_path - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  fs::create_symlink(at("fifo"), at("link"));
  fs::create_symlink(at("circle"), at("circle"));
  fs::create_symlink(at("nowhere"), at("dangling"));
  const std::pair<std::string, const char*> others[] = {{at("fifo"), "is a fifo"},
                                                        {at("socket"), "is a socket"},
                                                        {at("link"), "is a fifo"},
                                                        {folder.path(), "is a folder"},
                                                        {"/dev/null", "is a device"}};
  for (const auto& [path, kind] : others) {
    expect_error(Errc::invalid_argument, {path, kind, "expected a plain file"},
                 [&] { open_plain_file(path); });
  }
  expect_error(Errc::io, {at("circle"), "Too many levels"}, [&] { open_plain_file(at("circle")); });
  expect_error(Errc::not_found, {at("dangling")}, [&] { open_plain_file(at("dangling")); });
  ::close(socket);
}

}  // namespace
}  // namespace weft::plain_file_test
