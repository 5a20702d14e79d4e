#include "engine/bench/compare_page.hpp"

#include "engine/bench/compare_report.hpp"

namespace kilokv::engine::bench {

namespace {

void put_in_place(std::string* page, std::string_view mark, std::string_view text) {
  const std::size_t at = page->find(mark);
  if (at != std::string::npos) page->replace(at, mark.size(), text);
}

// Makes sure that no string of the document can end the HTML element that holds it. A '<' can only be in a string.
std::string inert(std::string_view document) {
  std::string text;
  for (const char c : document) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

// Whether every bracket that was opened is closed. If not, the document was cut off.
bool is_whole(std::string_view document) {
  std::int64_t open = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < document.size(); ++i) {
    const char c = document[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      open += c == '{' || c == '[' ? 1 : (c == '}' || c == ']' ? -1 : 0);
    }
  }
  return open == 0 && !in_string;
}

}  // namespace

Status can_write_page() {
  if (!kChartLibrary.empty()) return {};
  return {StatusCode::unavailable, ErrorReason::failed,
          "--html: this program was built without Chart.js (Debian's libjs-chart.js, or -DKILOKV_CHART_JS=FILE); "
          "--json works, and a program with it makes the page: compare --from FILE.json --html FILE.html"};
}

Result<std::string> compare_page(std::string_view document) {
  if (Status status = can_write_page(); !status.ok()) return status;
  if (!document.starts_with("{\"format\":\"" + std::string(kCompareFormat) + "\"")) {
    return Status(StatusCode::invalid_argument,
                  "--from: not a document of compare: it does not begin with format " + std::string(kCompareFormat));
  }
  if (!is_whole(document) || document.find("\"panels\":[") == std::string_view::npos) {
    return Status(StatusCode::invalid_argument, "--from: the document is not whole");
  }
  std::string page(kPageTemplate);
  put_in_place(&page, "/*document*/", inert(document));
  put_in_place(&page, "/*library*/", kChartLibrary);
  return page;
}

}  // namespace kilokv::engine::bench
