// Requests for pages over HTTP (server/http/connection.cpp). A real server reads them from a socket of this machine,
// because reading is one with its connection. Whatever comes, the server ends the connection, and what it sends begins
// with an answer whose code it may give. Only a POST may have a body here. A page is asked for only with a short path,
// without what follows a `?`.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http/http_server.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace kilokv::fuzz {
namespace {

using server::HttpLimits;
using server::Page;
using server::PageRequest;

Page page_of(const PageRequest& request) {
  const auto is_plain = [](unsigned char c) { return c > ' ' && c != '?' && c != 127; };
  KILOKV_CHECK(!request.method.empty() && std::all_of(request.method.begin(), request.method.end(), is_plain));
  KILOKV_CHECK(std::all_of(request.path.begin(), request.path.end(), is_plain));
  const std::size_t header = request.authorization ? request.authorization->size() : 0;
  KILOKV_CHECK(request.method.size() + request.path.size() + header <= HttpLimits::kHeaderBytesMax);
  KILOKV_CHECK(request.body.size() <= server::HttpOptions::kBodyBytesMax);
  Page page;
  page.body = request.path + request.body;
  return page;
}

std::unique_ptr<server::HttpServer> make_server() {
  Result<server::Listener> listener = server::listen_on("127.0.0.1:0");
  KILOKV_CHECK(listener.ok());
  HttpLimits limits;
  limits.opens_max = 1u << 30;
  server::HttpServer::Callbacks callbacks;
  callbacks.page = page_of;
  callbacks.page_at_once = [](const PageRequest& request) {
    return request.path == "/later" ? std::nullopt : std::optional<Page>(page_of(request));
  };
  callbacks.page_later = [](const PageRequest& request, const std::function<void(Page)>& done) {
    done(page_of(request));
    return true;
  };
  callbacks.refuse_body = [](const PageRequest& request) {
    return request.method == "POST" ? std::nullopt : std::optional<Page>(server::refusal_page(413, "only a POST"));
  };
  auto made = std::make_unique<server::HttpServer>(std::move(*listener), limits, std::move(callbacks));
  made->start();
  return made;
}

// Sends the bytes, and returns everything that comes back. The end of the socket is abrupt, so that no port waits.
std::string exchange(int port, std::string_view bytes) {
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const linger abrupt{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(client, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  KILOKV_CHECK(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  ::shutdown(client, SHUT_WR);
  std::string answer;
  std::array<char, 4096> part{};
  for (ssize_t size = 0; (size = ::recv(client, part.data(), part.size(), 0)) > 0;) {
    answer.append(part.data(), static_cast<std::size_t>(size));
  }
  ::close(client);
  return answer;
}

}  // namespace
}  // namespace kilokv::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  static const std::unique_ptr<server::HttpServer> pages = fuzz::make_server();
  const std::string answer = fuzz::exchange(pages->port(), fuzz::text_of(data, size));
  if (answer.empty()) return 0;
  constexpr std::string_view kBegin = "HTTP/1.";
  KILOKV_CHECK(answer.starts_with(kBegin) && answer.size() > kBegin.size() + 5);
  const unsigned code = static_cast<unsigned>(std::stoul(answer.substr(kBegin.size() + 2, 3)));
  KILOKV_CHECK(std::find(server::kPageCodes.begin(), server::kPageCodes.end(), code) != server::kPageCodes.end());
  return 0;
}
