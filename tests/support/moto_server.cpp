#include "tests/support/moto_server.hpp"

#include <stdlib.h>

#include <sstream>

#include <fmt/format.h>

namespace weft::testing {

MotoServer::MotoServer(const std::string& folder) {
  // Several tests may install moto at the same time.
  AppProcess install({"/usr/bin/flock", folder + ".lock", "/bin/sh", "-c",
                      fmt::format("test -e {0}/ready || (python3 -m venv {0} && "
                                  "{0}/bin/pip install -q 'moto[server]>=5.1,<6' && "
                                  "touch {0}/ready)",
                                  folder)});
  if (install.wait() != 0) {
    why_not_ = fmt::format("PyPI's moto can't be installed in {}: {}", folder, install.output());
    return;
  }
  process_ = std::make_unique<AppProcess>(std::vector<std::string>{
      folder + "/bin/python", std::string(WEFT_TEST_DIR) + "/support/moto_server.py"});
  std::istringstream words(process_->wait_for_line("ready"));
  std::string ready;
  std::string url;
  std::string key;
  std::string secret;
  is_there_ = static_cast<bool>(words >> ready >> url >> key >> secret);
  if (!is_there_) return;
  ::setenv("AWS_ENDPOINT_URL", url.c_str(), 1);
  ::setenv("AWS_ACCESS_KEY_ID", key.c_str(), 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", secret.c_str(), 1);
  ::setenv("WEFT_CACHE", cache_.path().c_str(), 1);
}

}  // namespace weft::testing
