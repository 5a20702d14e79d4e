// The trace that a request belongs to, as its client names it: the header `traceparent` of W3C Trace Context
// (https://www.w3.org/TR/trace-context/, version 00). The server only repeats it in its log, so that a slow request can
// be found in the traces of its program. It is no part of the content of a request.
//
// Only the parsed numbers are kept. So the text of a client never gets into the log.
// Thread safety: plain data and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kilokv::server {

struct TraceParent {
  std::array<unsigned char, 16> trace{};  // all zeros: the client names none
  std::array<unsigned char, 8> span{};    // the operation of the client, which the standard calls parent-id
  std::uint8_t flags = 0;                 // 1: the client's program records this trace

  bool present() const { return trace != decltype(trace){}; }
  friend bool operator==(const TraceParent&, const TraceParent&) = default;
};

// A longer text is no traceparent. Version 00 has 55 bytes; later versions may add to it.
inline constexpr std::size_t kTraceParentBytesMax = 256;

// Empty if the text is not VERSION-TRACE-SPAN-FLAGS in lower-case hexadecimal digits, or if an id is all zeros. From
// a later version, it takes the four parts that version 00 has, as the standard asks.
std::optional<TraceParent> parse_traceparent(std::string_view text);

// The ids as hexadecimal digits.
std::string trace_text(const TraceParent& parent);
std::string span_text(const TraceParent& parent);

}  // namespace kilokv::server
