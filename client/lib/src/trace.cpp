#include "client/lib/src/trace.hpp"

#include <algorithm>
#include <string_view>

#include "client/lib/src/error.hpp"

namespace kilokv::client {
namespace {

constexpr std::size_t kBytes = 55, kBytesMax = 256;  // of version 00; of any version

bool is_hex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == std::string_view::npos; }
bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }
bool is_printable(char c) { return c >= ' ' && c <= '~'; }

// VERSION-TRACE-SPAN-FLAGS in lower-case hexadecimal digits. A later version may add to it.
bool is_traceparent(std::string_view text) {
  if (text.size() < kBytes || text.size() > kBytesMax) return false;
  const std::string_view version = text.substr(0, 2), trace = text.substr(3, 32), span = text.substr(36, 16);
  if (text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
  if (!is_hex(version) || !is_hex(trace) || !is_hex(span) || !is_hex(text.substr(53, 2))) return false;
  if (version == "ff" || is_zero(trace) || is_zero(span)) return false;
  if (text.size() == kBytes) return true;
  return version != "00" && text[kBytes] == '-' && std::all_of(text.begin(), text.end(), is_printable);
}

}  // namespace

Error check_trace(const CallOptions& options) {
  if (options.traceparent.empty() || is_traceparent(options.traceparent)) return {};
  return make_error(ErrorCode::invalid_argument,
                    "traceparent is malformed: it must have the form of this header in W3C Trace Context, such as "
                    "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01");
}

void add_trace(const CallOptions& options, grpc::ClientContext* context) {
  if (!options.traceparent.empty()) context->AddMetadata("traceparent", options.traceparent);
}

}  // namespace kilokv::client
