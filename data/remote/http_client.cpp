#include "data/remote/http_client.hpp"

#include <dlfcn.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include <curl/curl.h>
#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr const char* kLibrary = "libcurl.so.4";
constexpr std::size_t kHeadersMax = 200;
constexpr long kBufferBytes = 512L << 10;
/// Before libcurl sends a body, it asks for permission with "Expect: 100-continue". The header that
/// disables this would be signed but not sent, so weft only shortens the wait for the answer.
constexpr long kExpectTimeoutMs = 1;

struct LibCurl {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;

  /// Throws unavailable if libcurl can't be loaded.
  static const LibCurl& get() {
    static const LibCurl functions;
    return functions;
  }

 private:
  LibCurl() {
    void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      fail(Errc::unavailable,
           "object stores need libcurl, but {} can't be loaded ({}): install the package libcurl4",
           kLibrary, ::dlerror());
    }
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr)
        fail(Errc::unavailable, "{} doesn't have the function {}", kLibrary, name);
    };
    find(global_init, "curl_global_init");
    find(easy_init, "curl_easy_init");
    find(easy_cleanup, "curl_easy_cleanup");
    find(easy_reset, "curl_easy_reset");
    find(easy_setopt, "curl_easy_setopt");
    find(easy_perform, "curl_easy_perform");
    find(easy_strerror, "curl_easy_strerror");
    find(slist_append, "curl_slist_append");
    find(slist_free_all, "curl_slist_free_all");
    if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      fail(Errc::unavailable, "{} can't be initialised", kLibrary);
    }
  }
};

/// The state of a request whose answer isn't complete yet.
struct Exchange {
  const HttpRequest* request = nullptr;
  HttpAnswer answer{};
  std::size_t sent = 0;
  std::string refused{};  ///< reason why the rest of the answer isn't read
};

/// A callback of libcurl: receives one line of the headers.
std::size_t take_header(char* data, std::size_t, std::size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  HttpAnswer& answer = exchange.answer;
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) {  // the first line of an answer, or of "100 Continue"
    const std::size_t space = line.find(' ');
    answer.status = space == std::string_view::npos
                        ? 0
                        : std::atoi(std::string(line.substr(space + 1, 3)).c_str());
    answer.headers.clear();
    return size;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  if (answer.headers.size() == kHeadersMax) {
    exchange.refused = fmt::format("the answer has more than {} headers", kHeadersMax);
    return 0;
  }
  std::string name(line.substr(0, colon));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && std::strchr("\r\n \t", value.back()) != nullptr) value.remove_suffix(1);
  answer.headers[std::move(name)] = value;
  return size;
}

/// A callback of libcurl: receives a piece of the body.
std::size_t take_body(char* data, std::size_t, std::size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  HttpAnswer& answer = exchange.answer;
  const std::span<std::byte> into = exchange.request->into;
  if (!into.empty() && answer.status >= 200 && answer.status < 300) {
    if (size > into.size() - answer.into_bytes) {
      exchange.refused =
          fmt::format("the answer has more than the {} bytes that were requested", into.size());
      return 0;
    }
    std::memcpy(into.data() + answer.into_bytes, data, size);
    answer.into_bytes += size;
    return size;
  }
  if (size > exchange.request->text_bytes_max - answer.text.size()) {
    exchange.refused =
        fmt::format("the answer has more than {} bytes", exchange.request->text_bytes_max);
    return 0;
  }
  answer.text.append(data, size);
  return size;
}

/// A callback of libcurl: provides the next piece of the request's body.
std::size_t give_body(char* data, std::size_t, std::size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::span<const std::byte> body = exchange.request->body;
  const std::size_t count = std::min(size, body.size() - exchange.sent);
  if (count > 0) std::memcpy(data, body.data() + exchange.sent, count);
  exchange.sent += count;
  return count;
}

/// A callback of libcurl: rewinds the body after a broken connection.
int seek_body(void* user, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Exchange*>(user)->sent = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

/// A callback of libcurl: makes a connection close in processes that this process starts.
int close_on_exec(void*, curl_socket_t descriptor, curlsocktype) {
  (void)::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return CURL_SOCKOPT_OK;
}

/// The headers of a request in libcurl's form.
class HeaderList {
 public:
  explicit HeaderList(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      list_ = LibCurl::get().slist_append(list_, line.c_str());
      if (list_ == nullptr) fail(Errc::no_space, "libcurl is out of memory");
    }
  }
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() { LibCurl::get().slist_free_all(list_); }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

}  // namespace

/// Unused handles of libcurl. Each handle keeps its connections open for the next request.
class HttpClient::Connections {
 public:
  /// Holds a handle during a request.
  class Lease {
   public:
    explicit Lease(Connections& all) : all_(all), handle_(all.take()) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      LibCurl::get().easy_reset(handle_);
      const std::lock_guard lock(all_.mutex_);
      all_.idle_.push_back(handle_);
    }
    CURL* get() const { return handle_; }

   private:
    Connections& all_;
    CURL* const handle_;
  };

  Connections() = default;
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  ~Connections() {
    for (CURL* handle : idle_) LibCurl::get().easy_cleanup(handle);
  }

 private:
  CURL* take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        CURL* const handle = idle_.back();
        idle_.pop_back();
        return handle;
      }
    }
    CURL* const handle = LibCurl::get().easy_init();
    if (handle == nullptr) fail(Errc::no_space, "libcurl is out of memory");
    return handle;
  }

  std::mutex mutex_;
  std::vector<CURL*> idle_;
};

HttpClient::HttpClient(HttpOptions options)
    : options_(std::move(options)), connections_(std::make_unique<Connections>()) {}

HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::send(const HttpRequest& request) {
  const LibCurl& curl = LibCurl::get();
  const Connections::Lease handle(*connections_);
  Exchange exchange{.request = &request};
  std::array<char, CURL_ERROR_SIZE> text{};
  const auto set = [&](CURLoption option, auto value) {
    const CURLcode code = curl.easy_setopt(handle.get(), option, value);
    if (code == CURLE_OK) return;
    fail(Errc::unavailable,
         "{} is too old, or lacks a feature that object stores need: option {}: {}", kLibrary,
         static_cast<int>(option), curl.easy_strerror(code));
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_AWS_SIGV4, fmt::format("aws:amz:{}:s3", options_.region).c_str());
  set(CURLOPT_USERNAME, options_.access_key.c_str());
  set(CURLOPT_PASSWORD, options_.secret_key.c_str());
  if (!options_.ca_bundle.empty()) set(CURLOPT_CAINFO, options_.ca_bundle.c_str());
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(options_.connect_timeout_s));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.stall_timeout_s));
  set(CURLOPT_EXPECT_100_TIMEOUT_MS, kExpectTimeoutMs);
  set(CURLOPT_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_UPLOAD_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_SOCKOPTFUNCTION, &close_on_exec);
  set(CURLOPT_ERRORBUFFER, text.data());
  set(CURLOPT_HEADERFUNCTION, &take_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&exchange));
  set(CURLOPT_WRITEFUNCTION, &take_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&exchange));
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else {
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  if (request.method == "PUT" || request.method == "POST") {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_READFUNCTION, &give_body);
    set(CURLOPT_READDATA, static_cast<void*>(&exchange));
    set(CURLOPT_SEEKFUNCTION, &seek_body);
    set(CURLOPT_SEEKDATA, static_cast<void*>(&exchange));
  }
  const HeaderList headers(request.headers);
  set(CURLOPT_HTTPHEADER, headers.get());
  const CURLcode code = curl.easy_perform(handle.get());
  if (code != CURLE_OK) {
    const char* const said = text[0] != '\0' ? text.data() : curl.easy_strerror(code);
    exchange.answer.fault = exchange.refused.empty() ? said : exchange.refused;
  }
  return std::move(exchange.answer);
}

}  // namespace weft
