#include "data/remote/s3_settings.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <fstream>

#include <weft/tensor/error.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::s3_settings_test {
namespace {

using testing::expect_error;

/// Unsets all AWS variables except those that a test sets, and makes HOME a folder of the test.
class S3SettingsOf : public ::testing::Test {
 protected:
  S3SettingsOf() {
    for (const char* name :
         {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
          "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3",
          "AWS_MAX_ATTEMPTS", "AWS_CA_BUNDLE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"}) {
      set(name, nullptr);
    }
    set("HOME", home_.path().c_str());
  }
  ~S3SettingsOf() override {
    for (const auto& [name, value] : before_) change(name, value ? value->c_str() : nullptr);
  }

  void set(const char* name, const char* value) {
    const char* const was = ::getenv(name);
    before_.try_emplace(name, was == nullptr ? std::nullopt : std::optional<std::string>(was));
    change(name, value);
  }
  void file(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(home_.path() + "/.aws");
    std::ofstream(home_.path() + "/.aws/" + name) << text;
  }

 private:
  static void change(const std::string& name, const char* value) {
    if (value == nullptr) {
      ::unsetenv(name.c_str());
    } else {
      ::setenv(name.c_str(), value, 1);
    }
  }
  const testing::TemporaryFolder home_;
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(S3SettingsOf, NothingAreAmazonsWithoutKeys) {
  const S3Settings settings = s3_settings();
  EXPECT_EQ(settings.endpoint, "");
  EXPECT_EQ(settings.region, "us-east-1");
  EXPECT_EQ(settings.access_key, "");
  EXPECT_EQ(settings.attempts, 5);
}

TEST_F(S3SettingsOf, VariablesGoBeforeFiles) {
  file("credentials", "[default]\naws_access_key_id = F\naws_secret_access_key=G\n");
  file("config", "[default]\nregion = eu-north-1\nendpoint_url = http://file:1\n");
  const S3Settings of_files = s3_settings();
  EXPECT_EQ(of_files.access_key, "F");
  EXPECT_EQ(of_files.secret_key, "G");
  EXPECT_EQ(of_files.region, "eu-north-1");
  EXPECT_EQ(of_files.endpoint, "http://file:1");
  set("AWS_ACCESS_KEY_ID", "V");
  set("AWS_SECRET_ACCESS_KEY", "W");
  set("AWS_SESSION_TOKEN", "T");
  set("AWS_DEFAULT_REGION", "eu-west-1");
  set("AWS_ENDPOINT_URL", "https://all/");
  S3Settings settings = s3_settings();
  EXPECT_EQ(settings.access_key + settings.secret_key + settings.session_token, "VWT");
  EXPECT_EQ(settings.region, "eu-west-1");
  EXPECT_EQ(settings.endpoint, "https://all");
  set("AWS_REGION", "eu-west-2");
  set("AWS_ENDPOINT_URL_S3", "https://s3:9000");
  settings = s3_settings();
  EXPECT_EQ(settings.region, "eu-west-2");
  EXPECT_EQ(settings.endpoint, "https://s3:9000");
}

TEST_F(S3SettingsOf, AProfileAreThoseOfItsSections) {
  file("credentials",
       "# keys\n[default]\naws_access_key_id = A\naws_secret_access_key = B\n"
       "[ other ]\r\naws_access_key_id = C\r\naws_secret_access_key = D=\r\n"
       "aws_session_token = E\n");
  file("config", "[profile other]\nregion = ap-south-1\ns3 =\n  region = no\n[other]\nregion=no\n");
  set("AWS_PROFILE", "other");
  const S3Settings settings = s3_settings();
  EXPECT_EQ(settings.access_key, "C");
  EXPECT_EQ(settings.secret_key, "D=");
  EXPECT_EQ(settings.session_token, "E");
  EXPECT_EQ(settings.region, "ap-south-1");
  EXPECT_NE(settings.origin.find("profile other of"), std::string::npos);
}

TEST_F(S3SettingsOf, WhatCanNotBeIsAnErrorWithTheVariable) {
  struct Case {
    const char* name;
    const char* value;
  };
  for (const Case& each : {Case{"AWS_REGION", "eu/../x"}, Case{"AWS_ENDPOINT_URL", "ftp://host"},
                           Case{"AWS_ENDPOINT_URL", "http://user@host"},
                           Case{"AWS_ENDPOINT_URL", "http://a b"}, Case{"AWS_MAX_ATTEMPTS", "0"},
                           Case{"AWS_MAX_ATTEMPTS", "3x"}, Case{"AWS_ACCESS_KEY_ID", "a\nb"}}) {
    set("AWS_SECRET_ACCESS_KEY", "x");
    set(each.name, each.value);
    expect_error(Errc::invalid_argument, {each.name}, [] { (void)s3_settings(); });
    set(each.name, nullptr);
  }
}

}  // namespace
}  // namespace weft::s3_settings_test
