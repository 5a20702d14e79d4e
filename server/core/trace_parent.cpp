#include "server/core/trace_parent.hpp"

#include <cstddef>
#include <span>

#include "server/core/hex.hpp"

namespace kilokv::server {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";  // the standard allows no other ones

// Where the parts of version 00 begin, and where it ends.
constexpr std::size_t kTraceAt = 3, kSpanAt = 36, kFlagsAt = 53, kEnd = 55;

// Reads two digits for each byte. False if a character is no digit.
bool read_hex(std::string_view text, std::span<unsigned char> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t high = kDigits.find(text[2 * i]), low = kDigits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    bytes[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return true;
}

}  // namespace

std::optional<TraceParent> parse_traceparent(std::string_view text) {
  if (text.size() < kEnd || text.size() > kTraceParentBytesMax) return {};
  for (const std::size_t dash : {kTraceAt - 1, kSpanAt - 1, kFlagsAt - 1}) {
    if (text[dash] != '-') return {};
  }
  TraceParent parent;
  unsigned char version = 0, flags = 0;
  if (!read_hex(text, {&version, 1}) || version == 0xFF) return {};
  if (!read_hex(text.substr(kTraceAt), parent.trace) || !read_hex(text.substr(kSpanAt), parent.span) ||
      !read_hex(text.substr(kFlagsAt), {&flags, 1})) {
    return {};
  }
  const bool ends_here = text.size() == kEnd;
  if (version == 0 ? !ends_here : !ends_here && text[kEnd] != '-') return {};
  if (!parent.present() || parent.span == decltype(parent.span){}) return {};
  parent.flags = flags;
  return parent;
}

std::string trace_text(const TraceParent& parent) { return hex_of(parent.trace); }

std::string span_text(const TraceParent& parent) { return hex_of(parent.span); }

}  // namespace kilokv::server
