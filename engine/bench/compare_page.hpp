// The page of `compare`. It is one HTML file that needs no other file: it holds the plots, the document that they are
// drawn from, and the chart library. The library is looked for when this program is built (bench/CMakeLists.txt). A
// program that was built without it cannot write a page. Another program can write the page later, from the document.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.hpp"

namespace kilokv::engine::bench {

// From embed.cmake: compare_page.html, and Chart.js (empty if it was not found).
extern const std::string_view kPageTemplate;
extern const std::string_view kChartLibrary;

// Returns UNAVAILABLE if this program was built without the library.
Status can_write_page();

// Makes the page of a document of compare_json(). Errors: INVALID_ARGUMENT for any other text; UNAVAILABLE as
// can_write_page().
Result<std::string> compare_page(std::string_view document);

}  // namespace kilokv::engine::bench
