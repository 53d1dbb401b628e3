/// Tests S3 with faults: servers give unusual answers, and connections break.

#include "data/remote/s3_storage.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include <weft/tensor/error.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/scripted_server.hpp"

namespace weft::s3_storage_test {
namespace {

using testing::expect_error;
using testing::http_answer;
using testing::ScriptedServer;

constexpr const char* kUrl = "s3://bucket/a/key";
const StoredObject kFive{.url = kUrl, .bytes = 5, .version = "\"v1\""};

StoragePtr storage_at(const ScriptedServer& server) {
  return make_s3_storage({.endpoint = server.url(),
                          .access_key = "AKID",
                          .secret_key = "secret",
                          .origin = "a test",
                          .attempts = 3,
                          .first_wait_ms = 1,
                          .stall_timeout_s = 5,
                          .part_bytes = 16});
}

std::string error_answer(int status, const std::string& code, const std::string& message,
                         const std::string& headers = "") {
  return http_answer(status,
                     fmt::format("<?xml version=\"1.0\"?><Error><Code>{}</Code>"
                                 "<Message>{}</Message></Error>",
                                 code, message),
                     headers);
}

std::string five(const std::string& version = "\"v1\"") {
  return http_answer(206, "hello", "ETag: " + version + "\r\n");
}

std::string read_five(Storage& storage) {
  std::string text(5, '?');
  storage.read(kFive, 0, std::as_writable_bytes(std::span(text)));
  return text;
}

bool put_text(Storage& storage, const std::string& text, PutMode mode) {
  const auto source = [&](std::uint64_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), text.data() + offset, out.size());
  };
  return storage.put(kUrl, text.size(), source, mode);
}

TEST(S3Storage, TriesAgainAfterAnAnswerThatAsksForIt) {
  for (const int status : {500, 502, 503, 504, 429}) {
    const ScriptedServer server([&](const std::string&, std::size_t before) {
      return before < 2 ? error_answer(status, "SlowDown", "later") : five();
    });
    EXPECT_EQ(read_five(*storage_at(server)), "hello") << status;
    EXPECT_EQ(server.requests().size(), 3U) << status;
  }
}

TEST(S3Storage, TriesAgainWhereAConnectionBreaks) {
  const std::string whole = five();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{10}, whole.size() - 2}) {
    const ScriptedServer server([&](const std::string&, std::size_t before) {
      return before < 2 ? whole.substr(0, bytes) : whole;
    });
    EXPECT_EQ(read_five(*storage_at(server)), "hello") << bytes;
    EXPECT_EQ(server.requests().size(), 3U) << bytes;
  }
}

TEST(S3Storage, GivesUpAfterSomeAttemptsAndSaysWhatWasAnswered) {
  const ScriptedServer server(
      [](const std::string&, std::size_t) { return error_answer(503, "SlowDown", "not now"); });
  expect_error(Errc::io,
               {kUrl, "bucket 'bucket'", "key 'a/key'", "HTTP 503 SlowDown (not now)",
                "tried 3 times", "AWS_MAX_ATTEMPTS"},
               [&] { read_five(*storage_at(server)); });
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST(S3Storage, GivesUpWhereNobodyListens) {
  std::string gone;
  {
    const ScriptedServer server([](const std::string&, std::size_t) { return five(); });
    gone = server.url();
  }
  const auto storage = make_s3_storage(
      {.endpoint = gone, .access_key = "a", .secret_key = "b", .attempts = 2, .first_wait_ms = 1});
  expect_error(Errc::io, {kUrl, "127.0.0.1", "tried 2 times", "AWS_ENDPOINT_URL"},
               [&] { read_five(*storage); });
}

TEST(S3Storage, DoesNotTryAgainWhereThatHelpsNothing) {
  struct Case {
    int status;
    const char* code;
    Errc errc;
    const char* advice;
  };
  for (const Case& each : {Case{403, "AccessDenied", Errc::io, "the keys come from a test"},
                           Case{403, "ExpiredToken", Errc::io, "check the keys"},
                           Case{403, "RequestTimeTooSkewed", Errc::io, "clock"},
                           Case{404, "NoSuchKey", Errc::not_found, ""},
                           Case{404, "NoSuchBucket", Errc::not_found, "no such bucket"}}) {
    const ScriptedServer server([&](const std::string&, std::size_t) {
      return error_answer(each.status, each.code, "said");
    });
    expect_error(each.errc, {kUrl, each.code, "(said)", each.advice},
                 [&] { read_five(*storage_at(server)); });
    EXPECT_EQ(server.requests().size(), 1U) << each.code;
  }
}

TEST(S3Storage, FollowsNoRedirection) {
  const ScriptedServer server([](const std::string&, std::size_t) {
    return error_answer(301, "PermanentRedirect", "elsewhere",
                        "Location: /bucket/a/key\r\nx-amz-bucket-region: eu-west-3\r\n");
  });
  expect_error(Errc::io, {"HTTP 301", "set AWS_REGION", "eu-west-3"},
               [&] { read_five(*storage_at(server)); });
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST(S3Storage, TakesNoBytesOfAnotherVersion) {
  for (const std::string& answer : {five("\"v2\""), error_answer(412, "PreconditionFailed", "")}) {
    const ScriptedServer server([&](const std::string&, std::size_t) { return answer; });
    expect_error(Errc::io, {kUrl, "was replaced"}, [&] { read_five(*storage_at(server)); });
    EXPECT_NE(server.requests()[0].find("if-match: \"v1\""), std::string::npos);
  }
}

TEST(S3Storage, TakesNoMoreAndNoFewerBytesThanItAskedFor) {
  const std::string etag = "ETag: \"v1\"\r\n";
  for (const auto& [answer, words] :
       {std::pair(http_answer(206, "hello, world", etag), "more than the 5 bytes"),
        std::pair(http_answer(206, "hell", etag), "gave 4 bytes with status 206"),
        std::pair(http_answer(206, "", etag), "gave 0 bytes")}) {
    const ScriptedServer server([&](const std::string&, std::size_t) { return answer; });
    expect_error(Errc::io, {kUrl, words}, [&] { read_five(*storage_at(server)); });
  }
  // The server answers a request for a range with the whole object, which is larger.
  const ScriptedServer server(
      [&](const std::string&, std::size_t) { return http_answer(200, "hello", etag); });
  std::string text(5, '?');
  expect_error(Errc::io, {"status 200 for 5 bytes at 3"}, [&] {
    storage_at(server)->read({.url = kUrl, .bytes = 10, .version = "\"v1\""}, 3,
                             std::as_writable_bytes(std::span(text)));
  });
}

TEST(S3Storage, ReadsNoEndlessAnswer) {
  const ScriptedServer server([](const std::string&, std::size_t) {
    return http_answer(403, std::string(std::size_t{3} << 20, '<'));
  });
  expect_error(Errc::io, {"more than 1048576 bytes"}, [&] { read_five(*storage_at(server)); });
  const ScriptedServer talker([](const std::string&, std::size_t) {
    std::string headers;
    for (int i = 0; i < 1000; ++i) headers += fmt::format("x-{}: y\r\n", i);
    return http_answer(206, "hello", headers);
  });
  expect_error(Errc::io, {"more than 200 headers"}, [&] { read_five(*storage_at(talker)); });
}

std::string page(const std::string& keys, const std::string& token) {
  return http_answer(200,
                     fmt::format("<ListBucketResult xmlns=\"x\"><EncodingType>url</EncodingType>"
                                 "<IsTruncated>{}</IsTruncated><NextContinuationToken>{}"
                                 "</NextContinuationToken>{}</ListBucketResult>",
                                 token.empty() ? "false" : "true", token, keys));
}

TEST(S3Storage, ListsAllPages) {
  const ScriptedServer server([](const std::string&, std::size_t before) {
    return before == 0
               ? page(
                     "<Contents><Key>a/b+c%26</Key><Size>3</Size><ETag>&quot;v&quot;</ETag>"
                     "</Contents>",
                     "next/1")
               : page("<Contents><Key>a/d</Key><Size>0</Size><ETag>w</ETag></Contents>", "");
  });
  EXPECT_EQ(
      storage_at(server)->list("s3://bucket/a/"),
      (std::vector<StoredObject>{{"s3://bucket/a/b c&", 3, "\"v\""}, {"s3://bucket/a/d", 0, "w"}}));
  EXPECT_EQ(server.lines(),
            (std::vector<std::string>{
                "GET /bucket?encoding-type=url&list-type=2&prefix=a%2F",
                "GET /bucket?continuation-token=next%2F1&encoding-type=url&list-type=2&"
                "prefix=a%2F"}));
}

TEST(S3Storage, RefusesListingsThatAreNone) {
  const std::string key = "<Contents><Key>a/b</Key><Size>1</Size></Contents>";
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<a>";
  for (const auto& [answer, words] :
       {std::pair(page(key, "same"), "doesn't end"),
        std::pair(page("<Contents><Key>other</Key><Size>1</Size></Contents>", ""),
                  "doesn't begin with this prefix"),
        std::pair(page("<Contents><Key>a/b</Key><Size>-1</Size></Contents>", ""), "'-1'"),
        std::pair(page("<Contents><Key>a/%zz</Key><Size>1</Size></Contents>", ""), "decoded"),
        std::pair(http_answer(200, "<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult/>"),
                  "expected an element"),
        std::pair(http_answer(200, "<html/>"), "'html'; expected 'ListBucketResult'"),
        std::pair(http_answer(200, ""), "expected an element"),
        std::pair(http_answer(200, deep), "too deep")}) {
    const ScriptedServer server([&](const std::string&, std::size_t) { return answer; });
    expect_error(Errc::corrupt, {"s3://bucket/a/", words},
                 [&] { storage_at(server)->list("s3://bucket/a/"); });
  }
}

TEST(S3Storage, SaysThatAnObjectIsAbsentButNotThatABucketIs) {
  for (const bool has_bucket : {true, false}) {
    const ScriptedServer server([&](const std::string& request, std::size_t) {
      if (request.starts_with("HEAD")) return http_answer(404);
      return error_answer(404, has_bucket ? "NoSuchKey" : "NoSuchBucket", "no");
    });
    const auto open = [&] { return storage_at(server)->open(kUrl); };
    if (has_bucket) {
      EXPECT_EQ(open(), std::nullopt);
    } else {
      expect_error(Errc::not_found, {"NoSuchBucket"}, open);
    }
  }
}

TEST(S3Storage, ReplacesNothingThatItMustNot) {
  const ScriptedServer server([](const std::string&, std::size_t) {
    return error_answer(412, "PreconditionFailed", "there is one");
  });
  EXPECT_FALSE(put_text(*storage_at(server), "text", PutMode::create));
  EXPECT_NE(server.requests()[0].find("if-none-match: *"), std::string::npos);
}

/// The first attempt stored the object, but its answer was lost. The second attempt finds that the
/// object exists and compares its content.
TEST(S3Storage, TakesWhatAnEarlierAttemptStoredForItsOwn) {
  for (const std::string stored : {"text", "test"}) {
    const ScriptedServer server([&](const std::string& request, std::size_t before) {
      const std::string etag = "ETag: \"e\"\r\n";
      if (request.starts_with("HEAD")) return http_answer(200, stored, etag);
      if (request.starts_with("GET")) return http_answer(206, stored, etag);
      return before == 0 ? std::string() : error_answer(412, "PreconditionFailed", "");
    });
    EXPECT_EQ(put_text(*storage_at(server), "text", PutMode::create), stored == "text");
  }
}

/// A server that accepts uploads in parts and has the given fault.
class PartServer {
 public:
  explicit PartServer(std::string fault) : fault_(std::move(fault)), server_(answer()) {}
  const ScriptedServer& server() const { return server_; }

 private:
  ScriptedServer::Answer answer() {
    return [this](const std::string& request, std::size_t) {
      if (request.starts_with("POST") && request.find("?uploads=") != std::string::npos) {
        return http_answer(200,
                           "<InitiateMultipartUploadResult><UploadId>u 1</UploadId>"
                           "</InitiateMultipartUploadResult>");
      }
      if (request.starts_with("PUT")) {
        const bool fails = fault_ == "part" && request.find("partNumber=2") != std::string::npos;
        return fails ? error_answer(403, "AccessDenied", "no")
                     : http_answer(200, "", "ETag: e\r\n");
      }
      if (request.starts_with("POST")) {
        if (fault_ == "end" && ends_++ < 1) return error_answer(200, "InternalError", "again");
        if (fault_ == "never") return error_answer(200, "InternalError", "again");
        return http_answer(200, "<CompleteMultipartUploadResult/>");
      }
      return http_answer(204);
    };
  }

  const std::string fault_;
  int ends_ = 0;
  ScriptedServer server_;
};

const std::string kThreeParts = "0123456789abcdef0123456789abcdef!";

TEST(S3Storage, PutsLargeObjectsByParts) {
  const PartServer server("");
  EXPECT_TRUE(put_text(*storage_at(server.server()), kThreeParts, PutMode::replace));
  const auto requests = server.server().requests();
  ASSERT_EQ(requests.size(), 5U);
  EXPECT_NE(requests[4].find("<Part><PartNumber>3</PartNumber><ETag>e</ETag><ChecksumCRC32>"),
            std::string::npos);
  EXPECT_NE(requests[4].find("POST /bucket/a/key?uploadId=u%201 "), std::string::npos);
}

TEST(S3Storage, LeavesNoPartsOfWhatItCouldNotPut) {
  for (const char* fault : {"part", "never"}) {
    const PartServer server(fault);
    expect_error(Errc::io, {kUrl, *fault == 'p' ? "AccessDenied" : "InternalError"},
                 [&] { put_text(*storage_at(server.server()), kThreeParts, PutMode::replace); });
    EXPECT_EQ(server.server().lines().back(), "DELETE /bucket/a/key?uploadId=u%201");
  }
}

TEST(S3Storage, EndsAnUploadAgainWhereAnErrorHasTheStatusOfSuccess) {
  const PartServer server("end");
  EXPECT_TRUE(put_text(*storage_at(server.server()), kThreeParts, PutMode::replace));
  EXPECT_EQ(server.server().requests().size(), 6U);
}

/// The CRC-32 of "123456789" is 0xCBF43926, as published.
TEST(S3Storage, SendsAChecksumOfWhatItPuts) {
  const ScriptedServer server([](const std::string&, std::size_t) { return http_answer(200); });
  EXPECT_TRUE(put_text(*storage_at(server), "123456789", PutMode::replace));
  const std::string request = server.requests()[0];
  EXPECT_NE(request.find("x-amz-checksum-crc32: y/Q5Jg=="), std::string::npos) << request;
  EXPECT_NE(request.find("AWS4-HMAC-SHA256 Credential=AKID/"), std::string::npos) << request;
}

TEST(S3Storage, NeedsKeysAndNamesThatS3CanHave) {
  const auto storage = make_s3_storage({.origin = "nothing"});
  expect_error(Errc::unavailable, {kUrl, "nothing", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"},
               [&] { storage->open(kUrl); });
  for (const char* url :
       {"s3://", "s3:///key", "s3://user@host/key", "s3://a:80/key", "s3://a\n/k",
        "s3://bucket/ke\ny", "s3://../key", "s3://bucket/a/../b", "s3://bucket/."}) {
    expect_error(Errc::invalid_argument, {"s3://BUCKET/KEY"}, [&] {
      try {
        storage->open(url);
      } catch (const Error& error) {
        // An error about the key has its own words, so these are not compared.
        if (std::string_view(error.what()).find("control") == std::string_view::npos) throw;
        fail(error.code(), "s3://BUCKET/KEY");
      }
    });
  }
}

}  // namespace
}  // namespace weft::s3_storage_test
