#include <weft/job/tls.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "actors/job/validate.hpp"
#include "actors/link/environment.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::tls_test {
namespace {

namespace fs = std::filesystem;
using testing::Authority;
using testing::expect_error;

class TlsTest : public ::testing::Test {
 protected:
  ~TlsTest() override { fs::remove_all(folder); }

  void expect_refused(std::initializer_list<std::string_view> words, const TlsConfig& tls) const {
    expect_error(Errc::invalid_argument, words, [&] { require_sound(tls); });
  }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = folder + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  std::string folder = "/tmp/weft-tls-" + testing::unique_job();
  Authority authority{"ours"};
  TlsConfig sound = authority.issue(folder, "node");
};

TEST_F(TlsTest, AllThreeFilesOfOneAuthorityAreSound) {
  require_sound(sound);
  require_sound(authority.issue(folder, "both", {.usage = "serverAuth,clientAuth"}));
}

TEST_F(TlsTest, AFileThatIsMissingIsNamed) {
  TlsConfig tls = sound;
  tls.certificate = "";
  expect_refused({"backend.tls.certificate = \"\"", "is missing", "backend.tls.ca, or none"}, tls);
  tls = sound;
  tls.key = "";
  expect_refused({"backend.tls.key = \"\"", "is missing"}, tls);
  tls = sound;
  tls.ca = "";
  expect_refused({"backend.tls.ca = \"\"", "is missing"}, tls);
  tls = sound;
  tls.ca = "/nowhere/ca.crt";
  expect_refused({"backend.tls.ca = \"/nowhere/ca.crt\"", "can't be read", "No such file"}, tls);
}

TEST_F(TlsTest, AFileOfAnotherKindIsNamed) {
  TlsConfig tls = sound;
  tls.certificate = write("text", "not a certificate\n");
  expect_refused({"backend.tls.certificate", "/text", "has no certificate", "PEM"}, tls);
  tls = sound;
  tls.key = write("text", "not a key\n");
  fs::permissions(tls.key, fs::perms(0600));
  expect_refused({"backend.tls.key", "/text", "has no key"}, tls);
  expect_refused({"backend.tls.key", "passphrase"},
                 authority.issue(folder, "locked", {.encrypted = true}));
}

TEST_F(TlsTest, ABundleThatIsBrokenFurtherDownIsRefused) {
  TlsConfig tls = sound;
  std::ifstream file(tls.ca);
  const std::string good{std::istreambuf_iterator<char>(file), {}};
  const std::string broken = "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n";
  tls.ca = write("bundle", "a comment\n" + good + good);
  require_sound(tls);
  tls.ca = write("bundle", good + broken);
  expect_refused({"backend.tls.ca", "/bundle", "unreadable certificate", "after 1"}, tls);
  tls.ca = write("bundle", broken + good);
  expect_refused({"backend.tls.ca", "/bundle", "unreadable certificate", "after 0"}, tls);
}

TEST_F(TlsTest, WhatIsNoFileIsNotWaitedFor) {
  TlsConfig tls = sound;
  tls.ca = folder + "/pipe";
  ASSERT_EQ(::mkfifo(tls.ca.c_str(), 0600), 0);
  expect_refused({"backend.tls.ca", "/pipe", "isn't a regular file"}, tls);
  tls.ca = folder;
  expect_refused({"backend.tls.ca", "isn't a regular file"}, tls);
  tls.ca = write("huge", "");
  fs::resize_file(tls.ca, std::uintmax_t{1} << 40);
  expect_refused({"backend.tls.ca", "/huge", "has 1099511627776 bytes"}, tls);
}

TEST_F(TlsTest, AKeyThatOthersMayReadIsRefused) {
  for (const unsigned mode : {0640U, 0604U, 0660U}) {
    fs::permissions(sound.key, fs::perms(mode));
    expect_refused({"backend.tls.key", sound.key, fmt::format("mode {:04o}", mode), "chmod 600"},
                   sound);
  }
}

TEST_F(TlsTest, AKeyOfAnotherCertificateIsRefused) {
  TlsConfig tls = sound;
  tls.key = authority.issue(folder, "other").key;
  expect_refused({"backend.tls.key", "other.key", "is not the key of", "node.crt"}, tls);
}

TEST_F(TlsTest, ACertificateOutOfItsTimeIsRefused) {
  expect_refused({"backend.tls.certificate", "has expired"},
                 authority.issue(folder, "old", {.from_days = -9, .to_days = -1}));
  expect_refused({"backend.tls.certificate", "not valid yet"},
                 authority.issue(folder, "new", {.from_days = 1, .to_days = 9}));
}

TEST_F(TlsTest, ACertificateOfAnotherAuthorityIsRefused) {
  TlsConfig tls = sound;
  tls.ca = Authority("theirs").issue(folder + "/theirs", "x").ca;
  expect_refused({"backend.tls.certificate", "is not signed by", tls.ca, "CN=ours"}, tls);
}

TEST_F(TlsTest, ACertificateForOneSideOnlyIsRefused) {
  for (const char* usage : {"serverAuth", "clientAuth", "codeSigning"}) {
    expect_refused({"backend.tls.certificate", "both sides"},
                   authority.issue(folder, usage, {.usage = usage}));
  }
}

TEST_F(TlsTest, AnAuthorityForOneSideOnlyIsRefused) {
  for (const char* usage : {"serverAuth", "clientAuth"}) {
    const Authority one_sided(usage, {.usage = usage});
    expect_refused({"backend.tls.certificate", "both sides"},
                   one_sided.issue(folder + "/one-sided", "node"));
  }
}

TEST_F(TlsTest, AKeyThatIsTooShortIsRefused) {
  expect_refused({"backend.tls.certificate", "too weak", "key too weak"},
                 authority.issue(folder, "short", {.rsa_bits = 512}));
  expect_refused({"backend.tls.certificate", "too weak", "key too weak"},
                 Authority("weak", {.rsa_bits = 512}).issue(folder + "/weak", "node"));
}

TEST_F(TlsTest, ValidationComesBeforeTheJob) {
  const auto refused = [](std::initializer_list<std::string_view> words, const TlsConfig& tls) {
    expect_error(Errc::invalid_argument, words,
                 [&] { validate({.backend = {.tls = tls}}, "program"); });
  };
  EXPECT_EQ(validate({.backend = {.tls = sound}}, "program").tls, sound);
  refused({"backend.tls.key"}, {.certificate = sound.certificate});
  refused({"backend.tls.listen", "0.0.0.0:0", "certificate"}, {.listen = "0.0.0.0:0"});
  for (const char* listen : {"", ":1", "host", "host:", "host:x", "host:65536", "a:b:1", "::1:0",
                             "[::1]", "[]:0", "[::1:0", "[host]:0", "[::1]0", "[::1] :0"}) {
    TlsConfig tls = sound;
    tls.listen = listen;
    refused({"backend.tls.listen", listen, "127.0.0.1:0"}, tls);
  }
}

TEST_F(TlsTest, AnAddressIsReadAsItIsWritten) {
  for (const char* text : {"127.0.0.1:0", "node7:4711", "[::1]:0", "[fe80::1%eth0]:65535"}) {
    EXPECT_EQ(to_string(parse_tls_address(text, "backend.tls.listen")), text);
  }
  EXPECT_EQ(parse_tls_address("[::1]:80", "backend.tls.listen").host, "::1");
  EXPECT_EQ(tls_address("tls://[::1]:4711").host, "::1");
}

TEST_F(TlsTest, AWorkersAddressIsOfOneOfTwoKinds) {
  EXPECT_EQ(tls_address("tls://127.0.0.1:4711").host, "127.0.0.1");
  EXPECT_EQ(tls_address("tls://127.0.0.1:4711").port, 4711);
  for (const char* address : {"tcp://127.0.0.1:1", "127.0.0.1:1", "unix:/x", "tls://127.0.0.1"}) {
    expect_error(Errc::invalid_argument, {"WEFT_COORDINATOR_ADDRESS"},
                 [&] { tls_address(address); });
  }
  expect_error(Errc::invalid_argument, {"tcp://127.0.0.1:1", "unix:/path"},
               [] { socket_path("tcp://127.0.0.1:1"); });
}

}  // namespace
}  // namespace weft::tls_test
