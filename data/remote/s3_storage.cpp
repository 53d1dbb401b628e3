#include "data/remote/s3_storage.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include <zlib.h>
#include <weft/tensor/error.hpp>

#include "data/files/work_crew.hpp"
#include "data/remote/s3_requests.hpp"

namespace weft {
namespace {

constexpr int kPartsAtATime = 4;
constexpr std::uint64_t kPartsMax = 10'000;  // S3's limit
constexpr std::size_t kListBytesMax = std::size_t{16} << 20;
constexpr std::size_t kObjectsMax = 50'000'000;
/// The maximum number of pages without objects in a listing. S3 returns such pages after many
/// objects were removed.
constexpr int kEmptyPagesMax = 1000;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Returns the CRC-32 in S3's form: base64 of its four bytes, the highest byte first.
std::string checksum_of(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto sum = static_cast<std::uint64_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  std::string text;
  for (int shift = 42; shift >= 12; shift -= 6) text += kDigits[sum << 16 >> shift & 63];
  return text + "==";
}

std::uint64_t parse_size(const std::string& text, const S3Name& name) {
  std::uint64_t size = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, size);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) {
    fail(Errc::corrupt, "{}: the server gives '{}' as an object's size", name.url,
         text.substr(0, 100));
  }
  return size;
}

class S3Storage : public Storage {
 public:
  explicit S3Storage(S3Settings settings) : requests_(std::move(settings)) {}

  std::optional<StoredObject> open(const std::string& url) override {
    const S3Request head{.method = "HEAD", .name = S3Name::parse(url)};
    const S3Answer answer = requests_.send(head);
    if (answer.is_ok()) {
      return StoredObject{.url = url,
                          .bytes = parse_size(answer.http.header("content-length"), head.name),
                          .version = answer.http.header("etag")};
    }
    // An answer to HEAD has no text, but the answer to this GET describes the error.
    S3Request get = head;
    get.method = "GET";
    get.headers = {"range: bytes=0-0"};
    const S3Answer said = requests_.send(get);
    if (said.http.status == 404 && said.code != "NoSuchBucket") return std::nullopt;
    requests_.require_ok(get, said);
    requests_.require_ok(head, answer);
    return std::nullopt;
  }

  void read(const StoredObject& object, std::uint64_t offset, std::span<std::byte> out) override {
    if (out.empty()) return;
    S3Request get{.method = "GET", .name = S3Name::parse(object.url), .into = out};
    get.headers = {fmt::format("if-match: {}", object.version),
                   fmt::format("range: bytes={}-{}", offset, offset + out.size() - 1)};
    const S3Answer answer = requests_.send(get);
    const std::string version = answer.http.header("etag");
    if (answer.http.status == 412 || (answer.is_ok() && version != object.version)) {
      fail(Errc::io, "{} was replaced while it was read: read it again", object.url);
    }
    requests_.require_ok(get, answer);
    const bool is_whole = offset == 0 && out.size() == object.bytes;
    if (answer.http.into_bytes == out.size() && (answer.http.status == 206 || is_whole)) return;
    fail(Errc::io, "{}: the server gave {} bytes with status {} for {} bytes at {}", object.url,
         answer.http.into_bytes, answer.http.status, out.size(), offset);
  }

  bool put(const std::string& url, std::uint64_t bytes, const ByteSource& source,
           PutMode mode) override {
    const S3Name name = S3Name::parse(url);
    if (bytes > requests_.settings().part_bytes) return put_by_parts(name, bytes, source, mode);
    std::vector<std::byte> body(static_cast<std::size_t>(bytes));
    if (bytes > 0) source(0, body);
    S3Request request{.method = "PUT", .name = name, .body = body};
    request.headers = {"x-amz-checksum-crc32: " + checksum_of(body)};
    add_condition(request, mode);
    return require_put(request, requests_.send(request), bytes, source);
  }

  std::vector<StoredObject> list(const std::string& prefix) override {
    const S3Name name = S3Name::parse(prefix);
    const std::string root = prefix.substr(0, prefix.size() - name.key.size());
    std::vector<StoredObject> objects;
    std::string token;
    int empty_pages = 0;
    for (;;) {
      S3Request request{.method = "GET", .name = name, .is_of_bucket = true};
      request.text_bytes_max = kListBytesMax;
      if (!token.empty()) request.query.emplace_back("continuation-token", token);
      request.query.emplace_back("encoding-type", "url");
      request.query.emplace_back("list-type", "2");
      request.query.emplace_back("prefix", name.key);
      const XmlElement page =
          parse_answer(request, requests_.send_well(request), "ListBucketResult");
      const std::size_t before = objects.size();
      add_objects(page, name, root.ends_with('/') ? root : root + "/", objects);
      if (page.text_of("IsTruncated") != "true") return objects;
      const std::string next = page.text_of("NextContinuationToken");
      if (objects.size() == before) ++empty_pages;
      if (next.empty() || next == token || empty_pages > kEmptyPagesMax ||
          objects.size() > kObjectsMax) {
        fail(Errc::corrupt, "{}: the server's listing doesn't end after {} objects", prefix,
             objects.size());
      }
      token = next;
    }
  }

  void remove(const std::string& url) override {
    const S3Request request{.method = "DELETE", .name = S3Name::parse(url)};
    const S3Answer answer = requests_.send(request);
    if (answer.http.status != 404 || answer.code == "NoSuchBucket") {
      requests_.require_ok(request, answer);
    }
  }

 private:
  static void add_condition(S3Request& request, PutMode mode) {
    if (mode == PutMode::create) request.headers.emplace_back("if-none-match: *");
  }

  static void add_objects(const XmlElement& page, const S3Name& name, const std::string& root,
                          std::vector<StoredObject>& objects) {
    const bool is_encoded = page.text_of("EncodingType") == "url";
    for (const XmlElement& element : page.children) {
      if (element.name != "Contents") continue;
      const std::string text = element.text_of("Key");
      const auto key = is_encoded ? percent_decoded(text) : std::optional(text);
      if (!key || !key->starts_with(name.key)) {
        fail(Errc::corrupt,
             "{}: the server lists a key that doesn't begin with this prefix, or can't be decoded",
             name.url);
      }
      objects.push_back({.url = root + *key,
                         .bytes = parse_size(element.text_of("Size"), name),
                         .version = element.text_of("ETag")});
    }
  }

  /// Returns true if this request stored the object, and false if another object was there before.
  bool require_put(const S3Request& request, const S3Answer& answer, std::uint64_t bytes,
                   const ByteSource& source) {
    if (answer.http.status == 412) {
      // An earlier attempt may have stored the object although its answer was lost.
      return answer.attempts > 1 && has(request.name.url, bytes, source);
    }
    requests_.require_ok(request, answer);
    return true;
  }

  bool has(const std::string& url, std::uint64_t bytes, const ByteSource& source) {
    const auto object = open(url);
    if (!object || object->bytes != bytes) return false;
    std::vector<std::byte> ours(requests_.settings().part_bytes);
    std::vector<std::byte> theirs(ours.size());
    for (std::uint64_t at = 0; at < bytes; at += ours.size()) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(ours.size(), bytes - at));
      source(at, std::span(ours).first(count));
      read(*object, at, std::span(theirs).first(count));
      if (std::memcmp(ours.data(), theirs.data(), count) != 0) return false;
    }
    return true;
  }

  bool put_by_parts(const S3Name& name, std::uint64_t bytes, const ByteSource& source,
                    PutMode mode) {
    S3Request begin{.method = "POST", .name = name, .query = {{"uploads", ""}}};
    begin.headers = {"x-amz-checksum-algorithm: CRC32"};
    const std::string upload =
        parse_answer(begin, requests_.send_well(begin), "InitiateMultipartUploadResult")
            .text_of("UploadId");
    try {
      const std::string parts = put_parts(name, upload, bytes, source);
      S3Request end{.method = "POST", .name = name, .query = {{"uploadId", upload}}};
      end.body = bytes_of(parts);
      add_condition(end, mode);
      const S3Answer answer = requests_.send(end);
      // An earlier attempt may have completed the upload although its answer was lost.
      const bool is_gone = answer.code == "NoSuchUpload" && answer.attempts > 1;
      if (is_gone && has(name.url, bytes, source)) return true;
      if (require_put(end, answer, bytes, source)) return true;
    } catch (...) {
      abort(name, upload);
      throw;
    }
    abort(name, upload);
    return false;
  }

  /// Puts all parts. Returns the XML text that lists them.
  std::string put_parts(const S3Name& name, const std::string& upload, std::uint64_t bytes,
                        const ByteSource& source) {
    const std::uint64_t part_bytes = std::max<std::uint64_t>(requests_.settings().part_bytes,
                                                             (bytes + kPartsMax - 1) / kPartsMax);
    std::vector<std::string> texts(static_cast<std::size_t>((bytes + part_bytes - 1) / part_bytes));
    WorkCrew(kPartsAtATime).each(texts.size(), [&](std::size_t i) {
      const std::uint64_t at = i * part_bytes;
      std::vector<std::byte> body(static_cast<std::size_t>(std::min(part_bytes, bytes - at)));
      source(at, body);
      const std::string sum = checksum_of(body);
      S3Request put{.method = "PUT",
                    .name = name,
                    .query = {{"partNumber", std::to_string(i + 1)}, {"uploadId", upload}}};
      put.headers = {"x-amz-checksum-crc32: " + sum};
      put.body = body;
      const std::string etag = requests_.send_well(put).http.header("etag");
      texts[i] = fmt::format(
          "<Part><PartNumber>{}</PartNumber><ETag>{}</ETag><ChecksumCRC32>{}</ChecksumCRC32></"
          "Part>",
          i + 1, as_xml(etag), sum);
    });
    std::string all = "<CompleteMultipartUpload>";
    for (const std::string& text : texts) all += text;
    return all + "</CompleteMultipartUpload>";
  }

  /// Escapes a text that the server sent, so that it can be sent back in XML.
  static std::string as_xml(const std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c == '<' || c == '>' || c == '&' || c == '"') {
        out += fmt::format("&#{};", static_cast<int>(c));
      } else {
        out += c;
      }
    }
    return out;
  }

  /// Aborts an upload, because S3 keeps its parts otherwise, and charges for them.
  void abort(const S3Name& name, const std::string& upload) {
    S3Request request{.method = "DELETE", .name = name, .query = {{"uploadId", upload}}};
    try {
      (void)requests_.send(request);
    } catch (const Error&) {
      // This error is ignored, because the error that caused the abort is more informative.
    }
  }

  S3Requests requests_;
};

}  // namespace

StoragePtr make_s3_storage(S3Settings settings) {
  return std::make_shared<S3Storage>(std::move(settings));
}

}  // namespace weft
