// A request for a page over HTTP, and the page. Thread safety: plain data.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tls/server_context.hpp"

namespace kilokv::server {

struct PageRequest {
  std::string method;                                                  // such as GET
  std::string path;                                                    // without what follows a `?`
  std::optional<std::string> authorization = {};                       // the header
  std::string peer = {};                                               // as gRPC names it, such as ipv4:127.0.0.1:40000
  std::shared_ptr<const tls::ShownCertificate> certificate = {};       // null: the client has shown none
  std::string host = {}, origin = {}, cookie = {}, content_type = {};  // headers; empty: none
  std::string body = {};
  std::stop_token gone = {};  // the client has gone: nobody takes the page
};

// The codes that an answer can have.
inline constexpr std::array<unsigned, 11> kPageCodes = {200, 302, 400, 401, 403, 404, 405, 413, 429, 431, 503};

struct Page {
  unsigned code = 200;  // one of kPageCodes
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
};

// A page that only says why there is no other one.
inline Page refusal_page(unsigned code, std::string why) {
  Page page;
  page.code = code;
  page.body = std::move(why);
  page.body += '\n';
  return page;
}

}  // namespace kilokv::server
