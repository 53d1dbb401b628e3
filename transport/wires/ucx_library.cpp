#include "transport/wires/wires.hpp"

#if __has_include(<ucp/api/ucp.h>)
#include <dlfcn.h>

#include <cstdlib>
#include <string_view>
#include <type_traits>

#include <weft/tensor/error.hpp>

#include "transport/wires/ucx_library.hpp"
#endif

namespace weft {

std::vector<std::string> ucx_variables() {
  return {"UCX_ERROR_SIGNALS=",      // no handlers of SIGSEGV, SIGBUS, ...
          "UCX_HANDLE_ERRORS=none",  // no debugger after an error
          "UCX_DEBUG_SIGNO=0",       // no handler of SIGHUP
          "UCX_MEM_EVENTS=n",        // no hooks in malloc() and mmap()
          "UCX_VFS_ENABLE=n",        // no thread and no files that show UCX's state
          "UCX_LOG_LEVEL=fatal",     // errors are returned; UCX would print them to stdout
          "UCX_WARN_UNUSED_ENV_VARS=n"};
}

#if __has_include(<ucp/api/ucp.h>)
namespace {

/// Throws unavailable unless the process was started with the variables. UCX reads them when it is
/// loaded, and it isn't safe to set them here, because the process may have other threads.
void require_variables() {
  for (const std::string& variable : ucx_variables()) {
    const std::size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && std::string_view(variable).substr(equals + 1) == value) continue;
    fail(Errc::unavailable,
         "UCX isn't loaded, because this process was started with {}{}: start it with {}", name,
         value != nullptr ? fmt::format("={}", value) : " unset", variable);
  }
}

void* load(const char* name) {
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(Errc::unavailable,
         "wires over UCX need {}, which can't be loaded ({}): install the package libucx0", name,
         ::dlerror());
  }
  return library;
}

}  // namespace

const UcxLibrary& UcxLibrary::get() {
  static const UcxLibrary functions;
  return functions;
}

UcxLibrary::UcxLibrary() {
  require_variables();
  void* const ucp = load("libucp.so.0");
  void* const ucs = load("libucs.so.0");
  const auto find = [](void* library, auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr) fail(Errc::unavailable, "UCX doesn't have the function {}", name);
  };
  find(ucp, config_read, "ucp_config_read");
  find(ucp, config_modify, "ucp_config_modify");
  find(ucp, config_release, "ucp_config_release");
  find(ucp, init_version, "ucp_init_version");
  find(ucp, cleanup, "ucp_cleanup");
  find(ucp, worker_create, "ucp_worker_create");
  find(ucp, worker_destroy, "ucp_worker_destroy");
  find(ucp, worker_get_address, "ucp_worker_get_address");
  find(ucp, worker_release_address, "ucp_worker_release_address");
  find(ucp, worker_get_efd, "ucp_worker_get_efd");
  find(ucp, worker_arm, "ucp_worker_arm");
  find(ucp, worker_progress, "ucp_worker_progress");
  find(ucp, ep_create, "ucp_ep_create");
  find(ucp, ep_close_nbx, "ucp_ep_close_nbx");
  find(ucp, tag_send_nbx, "ucp_tag_send_nbx");
  find(ucp, tag_recv_nbx, "ucp_tag_recv_nbx");
  find(ucp, request_check_status, "ucp_request_check_status");
  find(ucp, request_cancel, "ucp_request_cancel");
  find(ucp, request_free, "ucp_request_free");
  find(ucs, status_string, "ucs_status_string");
}
#else
std::unique_ptr<Wires> make_ucx_wires(const WireConfig&) {
  fail(Errc::unavailable,
       "this build of weft can't use UCX: install the package libucx-dev and build weft again");
}
#endif

}  // namespace weft
