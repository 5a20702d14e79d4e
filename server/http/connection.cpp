// Role: see connection.hpp.
#include "server/http/connection.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
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
    if (has_coding || parser_->chunked() || parser_->content_length().value_or(0) > 0) return refuse_body();
    ask();
  }

  void refuse_body() { answer_and_end(refusal_page(413, "a request for a page has no body")); }

  void ask() {
    const http::request<http::empty_body>& head = parser_->get();
    PageRequest request;
    request.method = std::string(head.method_string());
    request.path = std::string(head.target().substr(0, head.target().find('?')));
    if (const auto found = head.find(http::field::authorization); found != head.end()) {
      request.authorization = std::string(found->value());
    }
    request.peer = peer_.name;
    request.certificate = certificate_;
    is_head_ = head.method() == http::verb::head;
    keeps_ = head.keep_alive();
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
