// The page of `compare`: one HTML file that needs nothing else, with the plots, the document that they are drawn from,
// and the chart library. The library is found when this program is built (bench/CMakeLists.txt); a program that was
// built without writes no page, but one built elsewhere can, from the document.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.hpp"

namespace kilokv::engine::bench {

// Of embed.cmake: compare_page.html, and Chart.js, or nothing.
extern const std::string_view kPageTemplate;
extern const std::string_view kChartLibrary;

// UNAVAILABLE where this program was built without the library.
Status can_write_page();

// The page of a document of compare_json(). INVALID_ARGUMENT for anything else; UNAVAILABLE as above.
Result<std::string> compare_page(std::string_view document);

}  // namespace kilokv::engine::bench
