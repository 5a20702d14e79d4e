// Gives the server of the pages a context of TLS for each new pair of files, as gRPC gets one (tls_credentials.hpp).
// Thread safety: one user at a time.
#pragma once

#include <memory>
#include <utility>

#include "server/service/tls_files.hpp"
#include "tls/server_context.hpp"

namespace kilokv::server {

class PageContexts {
 public:
  explicit PageContexts(std::shared_ptr<TlsFiles> files) : files_(std::move(files)) {}

  // Null: the last one is still right.
  tls::ServerContext operator()() {
    std::shared_ptr<const TlsContent> content = files_->current();
    if (content == given_) return {};
    tls::ServerContext context =
        tls::server_context(content->pair, content->clients == nullptr ? "" : content->clients->authorities());
    if (context != nullptr) given_ = std::move(content);
    return context;
  }

 private:
  std::shared_ptr<TlsFiles> files_;
  std::shared_ptr<const TlsContent> given_;
};

}  // namespace kilokv::server
