// Role: see connection.hpp.
#include "server/http/connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace kilokv::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Error = boost::beast::error_code;
using Tcp = boost::asio::ip::tcp;
using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

// The headers, and what comes with them in one read.
constexpr std::size_t kBufferBytes = HttpLimits::kHeaderBytesMax + 1024;
// A connection that ends reads on for a while: otherwise the system may throw the answer away with what was not read.
constexpr std::chrono::seconds kEndingMax{1};
constexpr std::size_t kEndingBytesMax = std::size_t{64} << 10;

bool is_of_http(const Error& error) {
  return error.category() == http::make_error_code(http::error::end_of_stream).category();
}

template <class Stream>
class StreamConnection final : public HttpConnection, public std::enable_shared_from_this<StreamConnection<Stream>> {
 public:
  StreamConnection(Owner* owner, PeerName peer, Tcp::socket socket, std::shared_ptr<asio::ssl::context> context,
                   bool asks_for_certificate) requires std::is_same_v<Stream, TlsStream>
      : HttpConnection(owner, std::move(peer)),
        context_(std::move(context)),
        asks_for_certificate_(asks_for_certificate),
        stream_(std::move(socket), *context_) {}
  StreamConnection(Owner* owner, PeerName peer, Tcp::socket socket) requires std::is_same_v<Stream, PlainStream>
      : HttpConnection(owner, std::move(peer)), stream_(std::move(socket)) {}
  ~StreamConnection() override { leave(); }

  void start() override {
    expire_after(owner_->limits().head_us_max);
    if constexpr (kHasTls) {
      stream_.async_handshake(asio::ssl::stream_base::server, [self = this->shared_from_this()](const Error& error) {
        if (!error) self->handshake_done();
      });
    } else {
      read_head();
    }
  }

  void take_page(Page page, std::uint64_t charged_bytes) override {
    const std::shared_ptr<HttpConnection> self = std::move(self_);  // what is sent holds it from here on
    charged_bytes_ = charged_bytes;
    send(std::move(page), keeps_);
  }

  void look_if_gone() override {
    tcp_info info = {};
    socklen_t size = sizeof info;
    const int socket = tcp().socket().native_handle();
    const bool is_known = ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    if (is_known && info.tcpi_state != TCP_ESTABLISHED) gone_.request_stop();
  }

  void drop() override {
    const std::shared_ptr<HttpConnection> self = std::move(self_);
    leave();
    tcp().close();  // ends the operation that is under way
  }

 private:
  static constexpr bool kHasTls = std::is_same_v<Stream, TlsStream>;

  beast::tcp_stream& tcp() { return beast::get_lowest_layer(stream_); }
  void expire_after(DurationUs us) { tcp().expires_after(std::chrono::microseconds(us)); }
  void uncharge() {
    if (charged_bytes_ > 0) owner_->sent(std::exchange(charged_bytes_, 0));
  }
  void leave() {
    if (std::exchange(left_, true)) return;
    gone_.request_stop();
    uncharge();
    owner_->left(this);
  }

  void handshake_done() {
    if constexpr (kHasTls) {
      if (asks_for_certificate_) show_certificate(tls::shown_by(stream_.native_handle()));
    }
    read_head();
  }

  void show_certificate(tls::ShownCertificate shown) {
    if (!shown.own.empty()) certificate_ = std::make_shared<const tls::ShownCertificate>(std::move(shown));
  }

  // The deadline of the head is set already.
  void read_head() {
    parser_.emplace();
    parser_->header_limit(HttpLimits::kHeaderBytesMax);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](const Error& error, std::size_t) { self->on_head(error); });
  }

  void on_head(const Error& error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      const std::string most = std::to_string(HttpLimits::kHeaderBytesMax);
      return answer_and_end(refusal_page(431, "the headers of a request may have " + most + " bytes"));
    }
    if (error == http::error::body_limit) return refuse_body();
    if (error == http::error::end_of_stream || error == http::error::partial_message) return finish();
    if (error && is_of_http(error)) return answer_and_end(refusal_page(400, "this is not a request of HTTP/1.1"));
    if (error) return;  // the connection is lost, or the time is over
    // The parser knows the length of a body only without a coding, or with `chunked` alone. What it does not know would
    // be the next request.
    const bool has_coding = parser_->get().find(http::field::transfer_encoding) != parser_->get().end();
    if (has_coding || parser_->chunked()) return refuse_body();
    const std::uint64_t bytes = parser_->content_length().value_or(0);
    PageRequest request = request_of(parser_->get());
    if (bytes == 0) return ask(std::move(request));
    if (std::optional<Page> refusal = owner_->refuse_body(request)) return answer_and_end(std::move(*refusal));
    if (bytes > HttpOptions::kBodyBytesMax) {
      const std::string most = std::to_string(HttpOptions::kBodyBytesMax);
      return answer_and_end(refusal_page(413, "the body of a request may have " + most + " bytes"));
    }
    read_body(std::move(request));
  }

  void refuse_body() { answer_and_end(refusal_page(413, "a request has no body here, or one of a known length")); }

  // The deadline of the head holds for the body, too.
  void read_body(PageRequest request) {
    body_parser_.emplace(std::move(*parser_));
    body_parser_->body_limit(HttpOptions::kBodyBytesMax);
    http::async_read(
        stream_, buffer_, *body_parser_,
        [self = this->shared_from_this(), request = std::move(request)](const Error& error, std::size_t) mutable {
          if (error) return;  // the connection is lost, or the time is over
          request.body = std::move(self->body_parser_->get().body());
          self->body_parser_.reset();
          self->ask(std::move(request));
        });
  }

  template <class Head>
  PageRequest request_of(const Head& head) {
    const auto text_of = [&head](http::field field) { return std::string(head[field]); };
    PageRequest request;
    request.method = std::string(head.method_string());
    request.path = std::string(head.target().substr(0, head.target().find('?')));
    if (head.find(http::field::authorization) != head.end())
      request.authorization = text_of(http::field::authorization);
    request.host = text_of(http::field::host);
    request.origin = text_of(http::field::origin);
    request.cookie = text_of(http::field::cookie);
    request.content_type = text_of(http::field::content_type);
    request.peer = peer_.name;
    request.certificate = certificate_;
    is_head_ = head.method() == http::verb::head;
    keeps_ = head.keep_alive();
    return request;
  }

  void ask(PageRequest request) {
    gone_ = std::stop_source();
    request.gone = gone_.get_token();
    begin(Phase::page);
    self_ = this->shared_from_this();
    owner_->ask(this->shared_from_this(), std::move(request));
  }

  // A page that is not of the owner.
  void answer_and_end(Page page) {
    is_head_ = false;
    send(std::move(page), false);
  }

  void send(Page page, bool keeps) {
    keeps = keeps && page.code != 429;  // a client that asks too often pays for a new connection
    begin(Phase::answer);
    if (is_head_) {
      auto response = std::make_shared<http::response<http::empty_body>>();
      response->content_length(page.body.size());
      return write(page, std::move(response), keeps);
    }
    auto response = std::make_shared<http::response<http::string_body>>();
    response->body() = std::move(page.body);
    response->content_length(response->body().size());
    write(page, std::move(response), keeps);
  }

  template <class Response>
  void write(const Page& page, std::shared_ptr<Response> response, bool keeps) {
    owner_->answers(page.code);
    response->result(page.code);
    response->set(http::field::content_type, page.content_type);
    response->set(http::field::cache_control, "no-store");
    response->set("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : page.headers) response->set(name, value);
    response->keep_alive(keeps);
    expire_after(owner_->limits().answer_us_max);
    http::async_write(stream_, *response,
                      [self = this->shared_from_this(), response, keeps](const Error& error, std::size_t) {
                        self->uncharge();
                        if (!error) self->on_sent(keeps);
                      });
  }

  void on_sent(bool keeps) {
    begin(Phase::request);
    if (!keeps) return finish();
    if (buffer_.size() > 0) {  // the client did not wait for the answer
      expire_after(owner_->limits().head_us_max);
      return read_head();
    }
    expire_after(owner_->limits().idle_us_max);
    stream_.async_read_some(buffer_.prepare(kBufferBytes / 8),
                            [self = this->shared_from_this()](const Error& error, std::size_t bytes) {
                              if (error) return;
                              self->buffer_.commit(bytes);
                              self->expire_after(self->owner_->limits().head_us_max);
                              self->read_head();
                            });
  }

  void finish() {
    begin(Phase::request);
    tcp().expires_after(kEndingMax);
    if constexpr (kHasTls) {
      stream_.async_shutdown([self = this->shared_from_this()](const Error&) { self->end_side(); });
    } else {
      end_side();
    }
  }

  void end_side() {
    Error ignored;
    tcp().socket().shutdown(Tcp::socket::shutdown_send, ignored);
    discard(kEndingBytesMax);
  }

  void discard(std::size_t left) {
    buffer_.clear();
    tcp().async_read_some(buffer_.prepare(std::min(left, kBufferBytes / 2)),
                          [self = this->shared_from_this(), left](const Error& error, std::size_t bytes) {
                            if (!error && bytes < left) self->discard(left - bytes);
                          });
  }

  const std::shared_ptr<asio::ssl::context> context_;  // the stream refers to it
  const bool asks_for_certificate_ = false;
  Stream stream_;
  beast::flat_buffer buffer_{kBufferBytes};
  std::optional<http::request_parser<http::empty_body>> parser_;
  std::optional<http::request_parser<http::string_body>> body_parser_;
  std::stop_source gone_;                                     // the client has gone, while its page is made
  std::shared_ptr<const tls::ShownCertificate> certificate_;  // null: none
  bool is_head_ = false, keeps_ = false;  // the request wants the headers alone; the connection goes on after it
  std::uint64_t charged_bytes_ = 0;
  std::shared_ptr<HttpConnection> self_;  // while the page is made
  bool left_ = false;
};

}  // namespace

std::shared_ptr<HttpConnection> make_http_connection(HttpConnection::Owner* owner, PeerName peer, Tcp::socket socket,
                                                     const std::shared_ptr<asio::ssl::context>& context,
                                                     bool asks_for_certificate) {
  if (context == nullptr) {
    return std::make_shared<StreamConnection<PlainStream>>(owner, std::move(peer), std::move(socket));
  }
  return std::make_shared<StreamConnection<TlsStream>>(owner, std::move(peer), std::move(socket), context,
                                                       asks_for_certificate);
}

}  // namespace kilokv::server
