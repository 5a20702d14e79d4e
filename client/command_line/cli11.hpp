// The names of CLI11's classes that our headers pass on. A file that includes CLI/CLI.hpp compiles for seconds longer;
// only files that use these classes do.
#pragma once

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI
